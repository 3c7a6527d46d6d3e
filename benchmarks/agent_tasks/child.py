"""One run of a task, in a process that runner.py starts: its order comes by standard input, its end is a file."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import anyio

from fireswarm.agent.run import Watching, carry_out
from fireswarm.agent.task import AgentTask
from fireswarm.contracts.skills.skill import Question
from fireswarm.runs.make_mind import agent_catalog, redactor_for
from fireswarm.runs.model_adapters import make_model
from fireswarm.settings import AgentSettings

UNFORESEEN = "I cannot say more than the task does: decide by yourself, and say what you assumed."
"""Answer to a question that the task foresees no answer for."""


@dataclass(frozen=True, slots=True)
class Order:
    """What to run: ``home`` gets the run's files, ``ended`` is the file of its end.

    ``replies`` are answers to questions, each with the pattern of the question. ``then`` is said to the first answer.
    """

    objective: str
    project: str
    home: str
    ended: str
    settings: dict[str, object]
    replies: list[tuple[str, str]]
    then: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a run, as the child writes it for its parent. What is measured began at ``since``."""

    status: str
    reason: str
    answer: str
    since: str
    seconds: float


@dataclass(slots=True)
class Stopwatch:
    """When what is measured began, and how long it has taken."""

    since: str = ""
    _started: float = field(default=0.0)

    def start(self) -> None:
        """Measure from now on."""
        self.since, self._started = datetime.now(UTC).isoformat(), time.perf_counter()

    def end(self, status: str, reason: str, answer: str) -> Ended:
        """Return the end of the run, now."""
        return Ended(status, reason, answer, self.since, round(time.perf_counter() - self._started, 2))


def reply_to(description: str, replies: list[tuple[str, str]]) -> str:
    """Return what a person answers to a question."""
    return next((said for pattern, said in replies if re.search(pattern, description, re.IGNORECASE)), UNFORESEEN)


async def carry_out_order(order: Order) -> Ended:
    """Run the agent in the project's folder, as ``agent run --yes`` does, with a person who answers."""
    settings = AgentSettings.model_validate(order.settings)
    home = Path(order.home)
    os.chdir(order.project)

    async def ask(question: Question) -> str | None:
        return reply_to(question.description, order.replies)

    watch, left = Stopwatch(), [order.then] if order.then else []

    async def say_more(_answer: str) -> str | None:
        if not left:
            return None
        watch.start()
        return left.pop()

    catalog = agent_catalog(settings, Path.cwd(), home)
    model = make_model(settings, home, os.environ)  # loads the provider's package, which takes a second
    watch.start()
    watching = Watching(ask=ask, next_message=say_more if order.then else None)
    task = AgentTask(order.objective, yes=True)
    conclusion, _ = await carry_out(settings, catalog, task, home, watching, model=model)
    answer = redactor_for(settings).text(conclusion.answer)
    return watch.end(conclusion.status.value, conclusion.reason, answer)


def _stop_with_parent() -> None:
    """Stop this process in order when the parent's end of standard input is closed, also by its death."""

    def wait_for_end() -> None:
        os.read(sys.stdin.fileno(), 1)  # a buffered read would hold a lock that the end of this process needs
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait_for_end, daemon=True).start()


def main(work: Callable[[Order], Awaitable[Ended]] = carry_out_order) -> None:
    """Read the order, do the work, and write its end."""
    order = Order(**json.loads(sys.stdin.buffer.readline()))
    _stop_with_parent()
    ended = anyio.run(work, order)
    partial = Path(f"{order.ended}.part")
    partial.write_text(json.dumps(asdict(ended)), encoding="utf-8")
    partial.replace(order.ended)


if __name__ == "__main__":
    main()
