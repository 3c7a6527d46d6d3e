"""The conversation of a task, alone or beside that of its origin, and the form that forks it at an answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from anyio import to_thread

from fireswarm.api.console.visit import Goto, Shown, Visit
from fireswarm.client import Swarm
from fireswarm.contracts.swarm.run import RunStatus
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import InvalidInput, NotFound
from fireswarm.pipelines.scope import unified_diff
from fireswarm.runs.assemble import system_text
from fireswarm.runs.sinks.conversation_reader import Place, SeenAnswer, StoredConversation, find_conversation
from fireswarm.storage.documents.paths import run_path
from fireswarm.storage.documents.read import parse_readable, parse_run_snapshot
from fireswarm.swarm.records.artifacts import read_answer

SHOWN_ANSWERS = 25
"""Answers on one page."""

MAX_COMPARED_CHARS = 6_000
"""Maximum length of answers whose difference is shown: of texts made for it, twice that takes half a second."""

MAX_DRAWN_CHARS = 20_000
"""Of the answers on a page, so much is drawn as Markdown."""

MAX_LINE = 10
"""Maximum number of forks of forks whose answers are shown."""

MAX_DIGITS = 6


async def show_conversation(visit: Visit) -> Shown:
    """Make the page: answers of the task's model by page; with ``beside``, those of another task next to them."""
    swarm, start = visit.swarm, _number(visit.query.get("after", "0"))
    task = await swarm.get(visit.path["task_id"])
    tasks = [task, *([await swarm.get(visit.query["beside"])] if visit.query.get("beside") else [])]
    if len({each.session_hash for each in tasks}) > 1:
        raise InvalidInput("tasks of different sessions are not compared")
    talks = [await _find_talk(visit, each) for each in tasks]
    places = sorted({place for talk in talks for place in talk.places})
    answers = [await read_answer(swarm.parts.blobs, each) for each in tasks] if len(tasks) > 1 else []
    more = len(places) > start + SHOWN_ANSWERS
    values = {
        "task": task,
        "tasks": tasks,
        "talks": talks,
        "beside": tasks[1] if len(tasks) > 1 else None,
        "rows": await _read_rows(talks, places[start : start + SHOWN_ANSWERS]),
        "next": start + SHOWN_ANSWERS if more else 0,
        "failures": [] if more else [found for each in tasks if (found := await _find_failure(swarm, each))],
        "instructions": _instructions_of(swarm, task),
        "is_long": any(len(answer) > MAX_COMPARED_CHARS for answer in answers),
        "difference": "",
    }
    if answers and not values["is_long"]:
        values["difference"] = await to_thread.run_sync(_compare, answers[0], answers[1])
    return Shown("conversation.html", values)


async def _find_failure(swarm: Swarm, task: Task) -> dict[str, Any] | None:
    """Return the last run of a task with why it failed or ended early; None if it did not."""
    if not task.epoch:
        return None
    snapshot = await swarm.parts.store.get(run_path(task.run_id(task.epoch)))
    runs = parse_readable([snapshot] if snapshot.data is not None else [], parse_run_snapshot)
    run = next(iter(await swarm.parts.run_ends.complete(runs, [task])), None)
    if run is not None and run.status in (RunStatus.ERROR, RunStatus.TIMEOUT):
        return {"task": task, "run": run, "failed": True, "reason": run.error or run.summary}
    reason = (task.error or task.summary) if task.given_up else ""
    return {"task": task, "run": run, "failed": False, "reason": reason} if reason else None


def _instructions_of(swarm: Swarm, task: Task) -> str:
    """Return what a model of the task's role is told first, as it is now; capabilities add their own words."""
    card = swarm.parts.roles.get(task.assigned_to)
    return system_text((card.prompt if card else "", task.instructions, swarm.parts.protocol))


@dataclass(frozen=True, slots=True)
class Talk:
    """The conversation of a task. ``lines`` are those of the tasks that it was forked from, then its own.

    Each has the answer before which the next one begins, 0 for the last.
    """

    task: Task
    lines: Sequence[tuple[StoredConversation, int]]

    @property
    def own(self) -> StoredConversation:
        """What happened in the task itself."""
        return self.lines[-1][0]

    @property
    def places(self) -> set[Place]:
        """The places of all answers that it goes through."""
        return {place for found, end in self.lines for place in found.places if not end or place < (0, end)}

    async def read(self, place: Place) -> tuple[SeenAnswer, bool] | None:
        """Return the answer at a place, and whether it was given in a task that this one was forked from."""
        for found, end in reversed(self.lines):
            if (not end or place < (0, end)) and (seen := await found.read(place)) is not None:
                return seen, found is not self.own
        return None


async def _find_talk(visit: Visit, task: Task) -> Talk:
    """Find the answers of a task and of those that it was forked from, as far as they are there."""
    parts, lines, end, each = visit.swarm.parts, list[tuple[StoredConversation, int]](), 0, task
    for _ in range(MAX_LINE):
        lines.insert(0, (await find_conversation(parts.store, parts.blobs, each), end))
        if not each.fork_before or each.continues is None:
            break
        end = min(end or each.fork_before, each.fork_before)
        try:
            origin = await visit.swarm.get(each.continues)
        except (NotFound, InvalidInput):
            break
        if origin.session_hash != task.session_hash:
            break
        each = origin
    return Talk(task, lines)


async def _read_rows(talks: Sequence[Talk], places: Sequence[Place]) -> list[list[dict[str, Any] | None]]:
    """Read the answers of a page. Only the first are drawn as Markdown, of which the time is bounded so."""
    rows: list[list[dict[str, Any] | None]] = []
    drawn = 0
    for place in places:
        row: list[dict[str, Any] | None] = []
        for talk in talks:
            found = await talk.read(place)
            drawn += len(found[0].text) if found else 0
            row.append({"seen": found[0], "inherited": found[1], "drawn": drawn <= MAX_DRAWN_CHARS} if found else None)
        rows.append(row)
    return rows


def _compare(before: str, after: str) -> str:
    return unified_diff({"answer": f"{before}\n"}, {"answer": f"{after}\n"})


async def show_form(visit: Visit) -> Shown:
    """Make the form that forks a task before one answer. Raises InvalidInput for a browser that may only look."""
    if not visit.visitor.acts:
        raise InvalidInput("this link may only look: ask for a link of an operator")
    task = await visit.swarm.get(visit.path["task_id"])
    given = {"text": "", "model": task.model or "", "objective": task.objective, "context": _as_text(task)}
    return Shown("fork.html", {"task": task, "before": _number(visit.query.get("before", "1")), "given": given})


async def make(visit: Visit) -> Goto:
    """Fork the task as the form says, and go to the fork."""
    task, form = await visit.swarm.get(visit.path["task_id"]), visit.form
    context = visit.changed_text("context", _as_text(task))
    model = form.get("model", "").strip()
    made = await visit.swarm.fork(
        task,
        _number(form.get("before", "")),
        text=form.get("text", "").replace("\r\n", "\n").strip(),
        model=model if model and model != task.model else None,
        objective=visit.changed_text("objective", task.objective),
        context=None if context is None else _parse_context(context),
    )
    return Goto(f"/tasks/{made.task_id}", "forked" if made.created else "known")


def _parse_context(text: str) -> dict[str, Any]:
    """Return the inputs in a text. Raises InvalidInput for one that is no JSON object."""
    try:
        changed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"the inputs are not JSON: {error}") from error
    if not isinstance(changed, dict):
        raise InvalidInput('the inputs must be one JSON object, such as {"path": "notes"}')
    return dict(changed)


def _as_text(task: Task) -> str:
    return json.dumps(task.context, indent=1, ensure_ascii=False, default=str)


def _number(text: str) -> int:
    if not (text.isdecimal() and len(text) <= MAX_DIGITS):
        raise InvalidInput(f"{text[:MAX_DIGITS]!r} is no number of an answer")
    return int(text)
