"""Notices reach webhooks and commands: each event once, through failures, restarts and several processes."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import sys
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.ports import Create, Update, Write
from fireswarm.contracts.skills.skill import Question
from fireswarm.contracts.swarm.outcome import Failed, Waiting
from fireswarm.contracts.swarm.task import StatusReason, Task
from fireswarm.errors import StoreUnavailable
from fireswarm.llm.budget import Limit, Spend
from fireswarm.settings.swarm import ReceiverSettings
from fireswarm.storage.documents.paths import NOTICES
from fireswarm.storage.documents.queries import by_id
from fireswarm.swarm.notices.duty import AGAIN_SECONDS, PAUSES
from fireswarm.swarm.notices.notice import notices_of_task, report_limit, store_notices
from fireswarm.swarm.parts import SwarmParts
from tests.support.fleet import until
from tests.support.http import HttpServer, Request, Response
from tests.support.patience import PATIENCE_SECONDS
from tests.support.swarm import SwarmRig
from tests.support.working import with_skills, working

pytestmark = pytest.mark.anyio


@dataclass(slots=True)
class Channel:
    """A receiver that refuses the first requests, and remembers all of them."""

    refused: int = 0
    requests: list[Request] = field(default_factory=list[Request])

    def __call__(self, request: Request) -> Response:
        self.requests.append(request)
        return Response(503 if len(self.requests) <= self.refused else 204, b"")

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(request.body) for request in self.requests]

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncGenerator[str]:
        async with HttpServer(self).serving() as address:
            yield address


def receiving(swarm: SwarmRig, **receivers: dict[str, Any]) -> SwarmParts:
    """The swarm's parts with receivers of notices."""
    parsed = {name: ReceiverSettings.model_validate(given) for name, given in receivers.items()}
    settings = swarm.core.settings.model_copy(update={"notify": parsed})
    return replace(with_skills(swarm), settings=settings)


async def notices(swarm: SwarmRig) -> list[dict[str, Any]]:
    """All stored notices."""
    return [dict(found.data or {}) for found in await swarm.store.query(by_id(NOTICES, 100))]


async def sent(swarm: SwarmRig, number: int = 1) -> None:
    """Wait until so many notices are delivered; a second of virtual time passes at each look."""

    async def is_sent() -> bool:
        await swarm.clock.advance(1)
        return sum(notice["state"] == "sent" for notice in await notices(swarm)) == number

    await until(is_sent, seconds=PATIENCE_SECONDS, what="a delivery")


async def arrived(swarm: SwarmRig, channel: Channel, number: int) -> None:
    """Wait until a receiver has got so many requests, and their results are stored."""

    async def has_arrived() -> bool:
        await swarm.clock.settle()
        known = await notices(swarm)
        tried = [notice.get("error") or notice["state"] != "new" for notice in known]
        return len(channel.requests) == number and bool(tried) and all(tried)

    await until(has_arrived, seconds=PATIENCE_SECONDS, what=f"{number} requests")


async def ask(swarm: SwarmRig, text: str = "Which port?") -> Task:
    """A task that waits for an answer."""
    await swarm.submit(f"open {text}")
    held = await swarm.claim_one()
    question = Question(name="port", description=text)
    await swarm.settle(held, Waiting(StatusReason.INPUT_REQUIRED, "needs a port", (question,)))
    return await swarm.task(held.task.task_id)


async def test_a_receiver_that_fails_twice_gets_the_notice_once(swarm: SwarmRig) -> None:
    channel = Channel(refused=2)
    async with channel.open() as address:
        parts = receiving(swarm, pager={"url": f"{address}/hook"})
        task = await ask(swarm)
        async with working(parts):
            for number, pause in ((1, PAUSES[0]), (2, PAUSES[1])):
                await arrived(swarm, channel, number)
                await swarm.clock.advance(pause)
            await sent(swarm)
            await swarm.clock.advance(PAUSES[-1])
            assert [request.method for request in channel.requests] == ["POST"] * 3
    assert len({request.headers["webhook-id"] for request in channel.requests}) == 1
    assert {str(body) for body in channel.bodies} == {str(channel.bodies[0])}
    body = channel.bodies[0]
    assert body["type"] == "fireswarm.needs_person"
    assert body["data"]["task_id"] == task.task_id and body["data"]["asks"] == ["Which port?"]
    [stored] = await notices(swarm)
    assert stored["attempts"] == 3 and stored["state"] == "sent"


async def test_several_processes_and_a_restart_send_one_notice(both: SwarmRig) -> None:
    swarm, channel = both, Channel()
    async with channel.open() as address:
        parts = receiving(swarm, pager={"url": address})
        await ask(swarm)
        async with working(parts), working(parts, agent="scout-2"), working(parts, agent="scout-3"):
            await sent(swarm)
        async with working(parts, agent="scout-4"):
            await swarm.clock.advance(1)
            await swarm.submit("the next one", skill="noop")
            await sent(swarm, 2)
    assert [body["type"] for body in channel.bodies] == ["fireswarm.needs_person", "fireswarm.objective_ended"]


async def test_another_process_sends_what_a_killed_one_had_begun(swarm: SwarmRig) -> None:
    channel = Channel()
    async with channel.open() as address:
        parts = receiving(swarm, pager={"url": address})
        await ask(swarm)
        held = await swarm.client.get((await swarm.client.tasks())[0])
        await store_notices(swarm.store, notices_of_task(held, parts.settings.notify, swarm.clock.now()))
        [notice] = await notices(swarm)
        claimed = {"attempts": 1, "not_before": swarm.clock.now() + timedelta(seconds=10 + AGAIN_SECONDS)}
        await swarm.store.commit([Update(f"{NOTICES}/{notice['notice_id']}", claimed)])
        async with working(parts):
            await swarm.clock.advance(AGAIN_SECONDS)
            assert channel.requests == []
            await swarm.clock.advance(10)
            await sent(swarm)
    assert len(channel.requests) == 1


async def test_a_notice_waits_while_the_store_is_away(swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch) -> None:
    channel, failures = Channel(), [StoreUnavailable("away"), StoreUnavailable("away")]
    commit = type(swarm.store).commit

    async def fail_twice(store: Any, writes: Sequence[Write], **more: Any) -> Any:
        if failures and isinstance(writes[0], Update) and writes[0].path.startswith(NOTICES):
            raise failures.pop()
        return await commit(store, writes, **more)

    monkeypatch.setattr(type(swarm.store), "commit", fail_twice)
    async with channel.open() as address:
        parts = receiving(swarm, pager={"url": address})
        await ask(swarm)
        async with working(parts):
            await sent(swarm)
    assert len(channel.requests) == 1 and not failures


async def test_a_receiver_that_never_accepts_is_given_up(swarm: SwarmRig) -> None:
    channel = Channel(refused=1_000)
    async with channel.open() as address:
        parts = receiving(swarm, pager={"url": address})
        await ask(swarm)
        async with working(parts):
            for number, pause in enumerate((*PAUSES, 1.0), start=1):
                await arrived(swarm, channel, number)
                await swarm.clock.advance(pause)
    [notice] = await notices(swarm)
    assert notice["state"] == "failed" and "status 503" in notice["error"]


async def test_the_signature_is_that_of_standard_webhooks(swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch) -> None:
    key = b"a key of twenty-four byte"
    monkeypatch.setenv("PAGER_SECRET", f"whsec_{base64.b64encode(key).decode()}")
    channel = Channel()
    async with channel.open() as address:
        parts = receiving(swarm, pager={"url": address, "secret_env": "PAGER_SECRET"})
        await ask(swarm)
        async with working(parts):
            await sent(swarm)
    [request] = channel.requests
    given = request.headers
    signed = f"{given['webhook-id']}.{given['webhook-timestamp']}.".encode() + request.body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert given["webhook-signature"] == f"v1,{expected}"


async def test_a_text_for_slack_mentions_nobody_and_links_the_task(swarm: SwarmRig) -> None:
    channel = Channel()
    async with channel.open() as address:
        parts = receiving(swarm, slack={"url": address, "format": "slack", "console": "https://swarm.example/"})
        task = await ask(swarm, "<!channel> is <https://evil.example|this> & that fine?")
        async with working(parts):
            await sent(swarm)
    [body] = channel.bodies
    assert "<!channel>" not in body["text"] and "&lt;!channel&gt;" in body["text"]
    assert body["text"].endswith(f"<https://swarm.example/ui/tasks/{task.task_id}|Open the task>")


async def test_a_command_gets_the_notice_on_its_standard_input(swarm: SwarmRig, tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    code = f"import sys, pathlib; pathlib.Path({str(told)!r}).write_text(sys.stdin.read())"
    parts = receiving(swarm, desk={"command": [sys.executable, "-c", code]})
    await ask(swarm)
    async with working(parts):
        await sent(swarm)
    assert json.loads(told.read_text())["data"]["text"] == "needs a port"


@pytest.mark.parametrize("code", ["import sys; sys.exit('no paper')", None])
async def test_a_command_that_fails_is_tried_again(swarm: SwarmRig, code: str | None) -> None:
    command = [sys.executable, "-c", code] if code else ["/nowhere/program"]
    parts = receiving(swarm, desk={"command": command})
    await ask(swarm)
    async with working(parts):
        await arrived(swarm, Channel(), 0)
    [notice] = await notices(swarm)
    assert ("no paper" if code else "cannot start") in notice["error"] and notice["state"] == "new"


async def test_each_kind_of_event_has_its_notice(swarm: SwarmRig) -> None:
    channel = Channel()
    async with channel.open() as address:
        parts = receiving(swarm, pager={"url": address})
        for reason in (StatusReason.DEAD_LETTER, StatusReason.BUDGET_EXCEEDED, StatusReason.ESCALATED):
            await swarm.submit(f"fails by {reason}")
            held = await swarm.claim_one()
            await swarm.settle(held, Failed("it broke", reason))
        task = await swarm.submit("spends much")
        spent = Spend(calls=3, tokens=850, usd=0.1)
        limit = Limit("session", spent, tokens=1_000)
        for _ in range(2):
            await report_limit(parts.store, parts.clock, task, parts.settings.notify, limit)
        await swarm.client.cancel(task)
        async with working(parts):
            await sent(swarm, 5)
    found = sorted((body["type"], body["data"]["reason"]) for body in channel.bodies)
    assert found == [
        ("fireswarm.budget_100", "budget_exceeded"),
        ("fireswarm.budget_80", ""),
        ("fireswarm.dead_letter", "dead_letter"),
        ("fireswarm.needs_person", "escalated"),
        ("fireswarm.objective_ended", ""),
    ]
    assert any("85 % of a budget" in body["data"]["text"] for body in channel.bodies)


async def test_a_receiver_hears_only_of_the_kinds_it_asks_for(swarm: SwarmRig) -> None:
    parts = receiving(swarm, desk={"command": ["/bin/true"], "on": ["dead_letter"]})
    await ask(swarm)
    await swarm.submit("fails")
    await swarm.settle(await swarm.claim_one(), Failed("it broke", StatusReason.DEAD_LETTER))
    async with working(parts):
        await sent(swarm)
    assert [notice["kind"] for notice in await notices(swarm)] == ["dead_letter"]


async def test_a_notice_with_a_fault_does_not_stop_the_others(swarm: SwarmRig) -> None:
    channel = Channel()
    async with channel.open() as address:
        parts = receiving(swarm, pager={"url": address})
        await swarm.store.commit([Create(f"{NOTICES}/odd", {"role": "scout", "state": "new", "kind": 7})])
        await ask(swarm)
        async with working(parts):
            await sent(swarm)
    assert len(channel.requests) == 1


async def test_more_waits_than_is_listened_to_and_the_newest_is_told(
    swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fireswarm.swarm.notices.duty.LISTENED", 2)
    channel = Channel()
    async with channel.open() as address:
        parts = receiving(swarm, pager={"url": address})
        for number in range(5):
            await ask(swarm, f"Which port {number}?")
            await swarm.clock.advance(1)
        async with working(parts):
            await sent(swarm, 2)
        await ask(swarm, "Which port at last?")
        async with working(parts, agent="scout-2"):
            await sent(swarm, 3)
    assert sorted(body["data"]["asks"][0] for body in channel.bodies) == [
        "Which port 3?",
        "Which port 4?",
        "Which port at last?",
    ]


async def test_notices_of_a_receiver_that_was_removed_are_in_nobodys_way(
    swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fireswarm.swarm.notices.duty.LISTENED", 2)
    channel = Channel()
    async with channel.open() as address:
        gone = receiving(swarm, old={"url": address})
        for number in range(3):
            task = await ask(swarm, f"Which port {number}?")
            await store_notices(swarm.store, notices_of_task(task, gone.settings.notify, swarm.clock.now()))
        async with working(receiving(swarm, new={"url": address})):
            await sent(swarm, 2)
    assert {notice["receiver"] for notice in await notices(swarm) if notice["state"] == "sent"} == {"new"}


async def test_without_receivers_nothing_is_stored_or_listened_to(swarm: SwarmRig) -> None:
    await ask(swarm)
    async with working(with_skills(swarm)):
        await swarm.clock.advance(5)
    assert await notices(swarm) == []
