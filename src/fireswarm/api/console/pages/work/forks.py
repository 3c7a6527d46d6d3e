"""The conversation of a task, alone or beside that of its origin, and the form that forks it at an answer."""

from __future__ import annotations

import json
from itertools import zip_longest
from typing import Any

from fireswarm.api.console.visit import Goto, Shown, Visit
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import InvalidInput
from fireswarm.pipelines.scope import unified_diff
from fireswarm.runs.sinks.conversation_reader import SeenAnswer, read_conversation
from fireswarm.swarm.records.artifacts import read_answer

SHOWN_ANSWERS = 50
"""Answers on one page."""

MAX_DIGITS = 6


async def show_conversation(visit: Visit) -> Shown:
    """Make the page: answers of the task's model by page; with ``beside``, those of another task next to them."""
    swarm, start = visit.swarm, _number(visit.query.get("after", "0"))
    task = await swarm.get(visit.path["task_id"])
    tasks = [task, *([await swarm.get(visit.query["beside"])] if visit.query.get("beside") else [])]
    if len({each.session_hash for each in tasks}) > 1:
        raise InvalidInput("tasks of different sessions are not compared")
    parts = swarm.parts
    talks = [await read_conversation(parts.store, parts.blobs, each) for each in tasks]
    rows = list(zip_longest(*_align(talks)))
    answers = [await read_answer(parts.blobs, each) for each in tasks]
    values = {
        "task": task,
        "beside": tasks[1] if len(tasks) > 1 else None,
        "tasks": tasks,
        "rows": rows[start : start + SHOWN_ANSWERS],
        "next": start + SHOWN_ANSWERS if len(rows) > start + SHOWN_ANSWERS else 0,
        "totals": [_total(each, talk) for each, talk in zip(tasks, talks, strict=True)],
        "difference": unified_diff({"answer": answers[0]}, {"answer": answers[1]}) if len(answers) > 1 else "",
        "following": [],
    }
    return Shown("conversation.html", values)


def _align(talks: list[list[SeenAnswer]]) -> list[list[SeenAnswer | None]]:
    """Return the conversations with answers of the same phase and number in the same row."""
    places = sorted({(answer.phase, answer.number) for talk in talks for answer in talk})
    by_place = [{(answer.phase, answer.number): answer for answer in talk} for talk in talks]
    return [[talk.get(place) for place in places] for talk in by_place]


def _total(task: Task, talk: list[SeenAnswer]) -> dict[str, Any]:
    """Return what a conversation took: answers, tokens, cost and time."""
    prices = [answer.usd for answer in talk if answer.usd is not None]
    return {
        "task": task,
        "answers": len(talk),
        "tokens": sum(answer.tokens for answer in talk),
        "usd": sum(prices) if prices else None,
        "models": sorted({answer.model for answer in talk if answer.model}),
    }


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
