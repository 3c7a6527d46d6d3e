"""Put together what a model is given for a task: the words of the first message, and the input files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fireswarm.contracts.base import Contract, count_noun
from fireswarm.contracts.limits import MAX_LABEL_CHARS, MAX_RESULT_SUMMARY_CHARS, truncate
from fireswarm.contracts.skills.artifact import ANSWER, Attachment
from fireswarm.contracts.skills.skill import REVIEW
from fireswarm.contracts.swarm.envelope import Envelope
from fireswarm.contracts.swarm.task import Task, TaskStatus
from fireswarm.contracts.text_page import fence_lines, say_after
from fireswarm.errors import InvalidInput, NotFound
from fireswarm.llm.budget import Spend
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import task_path
from fireswarm.storage.documents.read import parse_readable, parse_task_snapshot
from fireswarm.swarm.turn.given.files import (
    ATTACHED,
    HANDED_OVER,
    Giver,
    InputFiles,
    attachments_giver,
    giver_of,
    input_root,
    trusted_attachments,
)
from fireswarm.swarm.turn.given.material import describe_givers, whole_lines
from fireswarm.swarm.turn.state import Turn

CHILD_CHARS = 12_000
"""Maximum characters of the quoted files of one delegated task, in the output of its call."""

HOW_TO_READ = (
    "Files below inputs/ are read-only. read_file, list_files and search_files take their paths; in commands, "
    "$INPUT_DIR is the folder inputs."
)


@dataclass(frozen=True, slots=True)
class ModelInputs:
    """The inputs of a model's turn.

    ``children`` are the results of delegated tasks in words, by plan key; None for one at work.
    """

    files: InputFiles
    text: str
    children: dict[str, str | None]


async def inputs_of(turn: Turn, phase: int) -> ModelInputs:
    """Return the inputs of the turn. Phase 0 is before the model's first plan.

    The text of phase 0 does not depend on children, whose results are the outputs of calls there.
    """
    relatives, request, task = turn.relatives, turn.request, turn.task
    folders = {ATTACHED, HANDED_OVER}
    files = InputFiles(input_root(turn.swarm, task.task_id), turn.swarm.blobs)
    root = await _root(turn)
    given = [giver_of(dependency, folders) for dependency in relatives.dependencies]
    envelope = relatives.envelope
    if envelope is not None and envelope.artifacts:
        given.append(Giver(HANDED_OVER, "the envelope of this task", artifacts=envelope.artifacts))
    attached = _attachments(task, envelope)
    if attached:
        given.append(attachments_giver(attached))
    children = [giver_of(child, folders) for child in relatives.children]
    trusted = trusted_attachments(relatives.earlier[0] if relatives.earlier and root is task else root)
    for giver in (*given, *children):
        files.add(giver, task.session_hash, trusted)
    shown = [*given, *(children if phase else ())]
    blocks = describe_givers(shown, files.by_giver, await _texts(files, shown))
    if phase:
        blocks.insert(len(given), await _plan_so_far(turn))
    text = "\n\n".join(
        block
        for block in (
            "# Inputs",
            _place_in_plan(task, root, envelope.notes if envelope is not None else ""),
            _expected_outcome(task, request.expected_outcome),
            HOW_TO_READ if any(files.by_giver.get(giver.folder) for giver in shown) else "",
            *blocks,
            whole_lines("Files that cannot be read", files.missing),
            whole_lines("Signals", [_compact(signal) for signal in request.signals]),
        )
        if block
    )
    told: dict[str, str | None] = {}
    for child, giver in zip(relatives.children, children, strict=True):
        if child.is_call and not (child.status.terminal or child.given_up):
            told[child.plan_key] = None
        elif child.is_review and _is_accepted(child):
            told[child.plan_key] = ""
        elif child.is_call:
            own = describe_givers([giver], files.by_giver, await _texts(files, [giver]), CHILD_CHARS)
            told[child.plan_key] = "\n\n".join(own)
    return ModelInputs(files, await _record(turn, phase, text), told)


def _is_accepted(review: Task) -> bool:
    """Return True if a review has ended with a signal that accepts the work."""
    signals = review.result.signals if review.result is not None else ()
    return review.status is TaskStatus.DONE and all(item.strength for item in signals if item.name == REVIEW)


async def _record(turn: Turn, phase: int, text: str) -> str:
    """Return the text as the first start of this phase had it: children go on meanwhile, and may fail unseen."""
    if not phase:
        return text
    failed = [child.task_id for child in turn.relatives.children if child.given_up]

    async def record() -> dict[str, Any]:
        return {"text": text, "failed": failed}

    told = await turn.journal.steps.step(f"{phase}/inputs", None, record, idempotent=True)
    turn.unseen = frozenset(failed) - {*told["failed"]}
    return str(told["text"])


async def _plan_so_far(turn: Turn) -> str:
    """Return the state of the plan: its round, and for each task the state, what it needs, and what it cost."""
    children, rounds, used = turn.relatives.children, turn.swarm.settings.worker.plan_rounds, turn.used_rounds
    keys = {child.task_id: child.plan_key for child in children}
    reviews = await _reviews_of(turn)
    spent = await _sum_costs(turn, {review.task_id: child for child, found in reviews.items() for review in found})
    lines = [
        "# Tasks of your plan",
        f"Round {used} of {rounds}. Finish with the answer when the work is good. Otherwise change the plan: "
        "finish with result.tasks (new tasks, which may depend on earlier ones), result.revise (send finished work "
        "back), result.retry (failed tasks), result.cancel or result.wait.",
    ]
    for child in children:
        state = child.status.value if child.status_reason is None else f"{child.status.value}: {child.status_reason}"
        needs = [keys[each] for each in child.depends_on if each in keys]
        after = f", after {', '.join(needs)}" if needs else ""
        cost = f", {spent[child.task_id]}" if child.task_id in spent else ""
        checked = _describe_checks(child, reviews.get(child.task_id, ()))
        error = f": {truncate(' '.join(child.error.split()), MAX_LABEL_CHARS)}" if child.error else ""
        lines.append(f"- {child.plan_key} ({child.assigned_to}{after}{cost}): {state}{error}{checked}")
    earlier = turn.task.result.artifacts if turn.task.result is not None else ()
    if said := next((str(item.value) for item in earlier if item.type == ANSWER and item.value), ""):
        said = fence_lines(truncate(said, MAX_RESULT_SUMMARY_CHARS), "your earlier answer")
        lines += ["", "What you said when you planned:", said]
    return "\n".join(lines)


async def _reviews_of(turn: Turn) -> dict[str, list[Task]]:
    """Return the reviews of each task of the plan, by its id."""
    ids = [each for child in turn.relatives.children if child.checks for each in child.children]
    read = await turn.swarm.store.get_many([task_path(each) for each in ids]) if ids else ()
    found: dict[str, list[Task]] = {}
    for task in parse_readable([item for item in read if item.data is not None], parse_task_snapshot):
        if task.is_review and task.parent_task_id is not None and task.session_hash == turn.task.session_hash:
            found.setdefault(task.parent_task_id, []).append(task)
    return found


def _describe_checks(child: Task, reviews: Sequence[Task]) -> str:
    """Return which checks a task that is done has passed, and how often its reviews sent it back first."""
    if child.status is not TaskStatus.DONE or not child.checks:
        return ""
    back = sum(not _is_accepted(review) for review in reviews)
    again = f", after reviews had sent it back {count_noun(back, 'time')}" if back else ""
    return f"; it passed {'; '.join(truncate(str(check), MAX_LABEL_CHARS) for check in child.checks)}{again}"


async def _sum_costs(turn: Turn, payers: Mapping[str, str]) -> dict[str, str]:
    """Return what the model calls of each task of the objective cost, in words.

    *payers* are the tasks to which the cost of others, their reviews, is added.
    """
    totals: dict[str, Spend] = {}
    for run in await turn.swarm.store.query(queries.runs_of(turn.task.trace.chain_id)):
        usage = (run.data or {}).get("usage")
        if isinstance(usage, dict) and (run.data or {}).get("session_hash") == turn.task.session_hash:
            spend = Spend(tokens=_number(usage, "tokens"), usd=_number(usage, "usd"))
            task_id = str((run.data or {}).get("task_id"))
            totals.setdefault(payers.get(task_id, task_id), Spend()).add(spend)
    return {
        task_id: f"{spend.tokens:,} tokens, {spend.usd:.4f} USD" for task_id, spend in totals.items() if spend.tokens
    }


def _number(usage: Mapping[str, Any], name: str) -> Any:
    value = usage.get(name)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else 0


async def _root(turn: Turn) -> Task:
    """Return the task of the operator's objective; the turn's own task if that is gone."""
    task = turn.task
    if task.trace.chain_id == task.task_id:
        return task
    try:
        root = await turn.swarm.board.get(task.trace.chain_id)
    except (NotFound, InvalidInput):
        return task
    return root if root.session_hash == task.session_hash else task


def _attachments(task: Task, envelope: Envelope | None) -> Sequence[Attachment]:
    """Return the files that are attached to a task, and those of its envelope, each once."""
    every = (*task.attachments, *(envelope.attachments if envelope is not None else ()))
    return list({item.uri: item for item in every}.values())


def _place_in_plan(task: Task, root: Task, notes: str) -> str:
    """Return the operator's objective and the task's place in the plan, if another task planned it."""
    if task.parent_task_id is None or root is task:
        return ""
    lines = ["## The operator's objective, of which this task is a part", root.objective]
    if notes and not task.is_call:
        lines += ["", say_after("## The plan", notes, "the planner of this task")]
    return "\n".join(lines)


def _expected_outcome(task: Task, expected: str) -> str:
    """Return the section with the expected outcome: of a planned task as a quotation, each line with a mark."""
    if not expected:
        return ""
    if task.parent_task_id is None:
        return f"## Expected outcome\n{expected}"
    return "\n".join(["## Expected outcome, in the planner's words", *(f"> {line}" for line in expected.splitlines())])


def _compact(item: Contract) -> str:
    return json.dumps(
        item.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False, default=str, sort_keys=True
    )


async def _texts(files: InputFiles, givers: Sequence[Giver]) -> dict[str, str]:
    """Return the texts of the givers' files by path; files that are too large or no text are missing."""
    texts: dict[str, str] = {}
    for giver in givers:
        for file in files.by_giver.get(giver.folder, ()):
            if (text := await files.text(file)) is not None:
                texts[file.name] = text
    return texts
