"""One request to the console: who asks, for what, and what a page answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
from jinja2 import Environment
from starlette.requests import HTTPConnection

from fireswarm.api.console.access import Entrance, KnownCallers, Stranger, Visitor
from fireswarm.api.console.feed import Feed
from fireswarm.api.console.forms import Upload
from fireswarm.api.console.rendering import clean_text, make_environment
from fireswarm.client import Swarm
from fireswarm.errors import InvalidInput
from fireswarm.redaction import Redactor
from fireswarm.swarm.records.artifacts import Content

FILES_AT_ONCE = 2

PREFIX = "/ui"
"""Path below which the console is served."""


@dataclass(frozen=True, slots=True)
class WebConsole:
    """What all pages share. ``callers`` are known without a link; ``stopping`` is set at shutdown.

    ``files`` limits the files of tasks that are read at once, each of which may have 50 MB.
    """

    swarm: Swarm
    redactor: Redactor
    entrance: Entrance = field(default_factory=Entrance)
    callers: KnownCallers = field(default_factory=KnownCallers)
    stopping: anyio.Event = field(default_factory=anyio.Event)
    files: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(FILES_AT_ONCE))
    feed: Feed = field(init=False)
    environment: Environment = field(init=False)

    def __post_init__(self) -> None:
        """Make the feed and the templates."""
        billed = self.swarm.parts.settings.store.uri == "firestore"
        object.__setattr__(self, "feed", Feed(self.swarm, billed))
        object.__setattr__(self, "environment", make_environment(self.redactor))

    async def find_visitor(self, request: HTTPConnection) -> Visitor | Stranger:
        """Return who sends a request: the browser of its cookie, or a known caller.

        Raises StoreUnavailable if Google's keys are needed and cannot be fetched.
        """
        visitor = self.entrance.visitor(request.cookies.get(self.entrance.cookie, ""))
        return visitor or await self.callers.find(request.headers)

    def link(self, address: str, visitor: str) -> str:
        """Return the address that opens the console; *visitor* is the secret of a new link."""
        return f"{address}{PREFIX}/enter?key={visitor}"


@dataclass(frozen=True, slots=True)
class Visit:
    """One request of a known browser: ``path`` are the parts of its address.

    ``form`` are the fields of a form, ``files`` those that came with it.
    """

    console: WebConsole
    visitor: Visitor
    path: Mapping[str, str]
    query: Mapping[str, str]
    form: Mapping[str, str] = field(default_factory=dict[str, str])
    files: tuple[Upload, ...] = ()

    @property
    def swarm(self) -> Swarm:
        """The swarm of the console."""
        return self.console.swarm

    def changed_text(self, name: str, before: str) -> str | None:
        """Return a field's text, or None if it still is *before* as the page showed it.

        Raises InvalidInput for a changed text of which the page had left out secrets: they would be lost.
        """
        text, shown = self.form.get(name, "").replace("\r\n", "\n").strip(), clean_text(self.console.redactor, before)
        if not text or text == shown.strip():
            return None
        if shown != before:
            raise InvalidInput(f"{name} has secrets or signs that this page does not show: change it by command")
        return text


@dataclass(frozen=True, slots=True)
class Shown:
    """A page to make of a template."""

    template: str
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    status: int = 200


@dataclass(frozen=True, slots=True)
class Goto:
    """The page to go to after an action; ``done`` is a word of ``DONE`` that it shows."""

    path: str
    done: str = ""


@dataclass(frozen=True, slots=True)
class Download:
    """A file that the browser saves: it is never shown in the console's own place."""

    content: Content


DONE: Mapping[str, str] = {
    "submitted": "The objective is submitted.",
    "known": "The same work was submitted before: this is its task.",
    "answered": "Your answers are stored, and the task is queued again.",
    "approved": "You allowed the action; its run continues.",
    "planned": "The plan is approved; its tasks begin.",
    "forked": "This is the fork: it has the steps of its origin, and goes on from there.",
    "denied": "You refused the action.",
    "retry": "The task is queued again.",
    "cancel": "The task is canceled.",
    "say": "The task's model hears this before its next call.",
    "scheduled": "The schedule is set.",
    "schedule_paused": "The schedule submits nothing until you resume it.",
    "schedule_resumed": "The schedule goes on with its next time.",
    "schedule_removed": "The schedule is removed. Its tasks go on.",
    "retry_late": "The task is queued again, without its deadline, which had passed.",
    "fact_wrong": "The fact is marked as wrong: no agent is told it again.",
    "fact_corrected": "The value is replaced; the earlier one is in the history.",
    "fact_forgotten": "The fact is deleted with all its values.",
    "fact_right": "The mark is removed.",
    "backed_up": "The backup is written: it is the first of the list below.",
    "budget": "The budget is set.",
    "paused": "It claims no more tasks; what it holds goes on.",
    "resumed_drained": "The order has ended. What it drained stays ended: swarm up starts processes.",
    "resumed": "It claims tasks again.",
    "drained": "It hands its tasks back and ends; a new swarm up starts it again.",
    "budget_stopped": "The budget is set. Tasks that stopped for a budget are below: choose them, and try them again.",
    "budget_retried": "The budget is set, and what stopped for it is queued again. A deadline that has passed is gone.",
}
"""What a page says after an action. A link cannot make it say anything: the word has a seal."""
