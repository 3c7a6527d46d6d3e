"""The console for tests: a browser that entered it, in this process."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass

import httpx2

from fireswarm.api.console.access import ConsoleRole
from fireswarm.api.console.application import make_console
from fireswarm.api.console.visit import WebConsole
from fireswarm.contracts.skills.skill import Question
from fireswarm.contracts.swarm.outcome import Waiting
from fireswarm.contracts.swarm.task import StatusReason, Task
from fireswarm.redaction import Redactor
from tests.support.swarm import SwarmRig

CONSOLE_SECRET = "hunter2-hunter2-hunter2"


@dataclass(frozen=True)
class Browser:
    """A browser that entered a console."""

    swarm: SwarmRig
    console: WebConsole
    client: httpx2.AsyncClient
    transport: httpx2.ASGITransport

    async def page(self, path: str, status: int = 200) -> str:
        answer = await self.client.get(f"/ui{path}")
        assert answer.status_code == status, answer.text
        return answer.text

    async def send(self, path: str, /, **form: str) -> httpx2.Response:
        """Send a form as a page of the console does."""
        return await self.client.post(f"/ui{path}", data={"token": self.token, **form})

    @property
    def token(self) -> str:
        """The token of this browser's forms."""
        visitor = self.console.entrance.visitor(self.client.cookies[self.console.entrance.cookie])
        assert visitor is not None
        return visitor.form_token


@contextlib.asynccontextmanager
async def open_browser(swarm: SwarmRig, role: ConsoleRole = ConsoleRole.OPERATOR) -> AsyncGenerator[Browser]:
    console = WebConsole(swarm.client, Redactor((CONSOLE_SECRET,)))
    transport = httpx2.ASGITransport(app=make_console(console), raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        entered = await client.get(console.link("", console.entrance.new_link(role)))
        assert entered.status_code == 303 and entered.headers["location"] == "/ui/"
        yield Browser(swarm, console, client, transport)


async def blocked(
    swarm: SwarmRig, *questions: Question, reason: StatusReason = StatusReason.INPUT_REQUIRED, **fields: str
) -> Task:
    task = await swarm.submit("needs a person", role="scout", **fields)
    claimed = await swarm.claim_one()
    await swarm.settle(claimed, Waiting(reason, "asks", questions=questions))
    return await swarm.client.get(task)
