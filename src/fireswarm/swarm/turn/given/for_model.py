"""Put together what a model is given for a task: the words of the first message, and the input files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from fireswarm.contracts.base import Contract
from fireswarm.contracts.skills.artifact import Attachment
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import InvalidInput, NotFound
from fireswarm.swarm.turn.given.files import (
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
    """The inputs of a model's turn. ``children`` are the results of delegated tasks in words, by plan key."""

    files: InputFiles
    text: str
    children: dict[str, str]


async def inputs_of(turn: Turn, phase: int) -> ModelInputs:
    """Return the inputs of the turn. Phase 0 is before the model's first plan.

    The text of phase 0 does not depend on children, whose results are the outputs of calls there.
    """
    relatives, request, task = turn.relatives, turn.request, turn.task
    folders: set[str] = set()
    files = InputFiles(input_root(turn.swarm, task.task_id), turn.swarm.blobs)
    root = await _root(turn)
    given = [giver_of(dependency, folders) for dependency in relatives.dependencies]
    envelope = relatives.envelope
    if envelope is not None and envelope.artifacts:
        given.append(Giver("handed-over", "the envelope of this task", artifacts=envelope.artifacts))
    attached = _attachments(turn)
    if attached:
        given.append(attachments_giver(attached))
    children = [giver_of(child, folders) for child in relatives.children]
    for giver in (*given, *children):
        files.add(giver, task.session_hash, trusted_attachments(root))
    shown = [*given, *(children if phase else ())]
    blocks = describe_givers(shown, files.by_giver, await _texts(files, shown))
    if phase:
        blocks.insert(len(given), "# Tasks of your plan")
    text = "\n\n".join(
        block
        for block in (
            "# Inputs",
            _place_in_plan(task, root, envelope.notes if envelope is not None else ""),
            f"## Expected outcome\n{request.expected_outcome}" if request.expected_outcome else "",
            HOW_TO_READ if any(files.by_giver.get(giver.folder) for giver in shown) else "",
            *blocks,
            whole_lines("Files that cannot be read", files.missing),
            whole_lines("Signals", [_compact(signal) for signal in request.signals]),
            whole_lines("Facts from memory", [_compact(fact) for fact in request.facts]),
            f"## Roles that can take tasks\n{', '.join(request.roles)}" if not phase else "",
        )
        if block
    )
    told: dict[str, str] = {}
    for child, giver in zip(relatives.children, children, strict=True):
        if not phase:
            own = describe_givers([giver], files.by_giver, await _texts(files, [giver]), CHILD_CHARS)
            told[child.plan_key] = "\n\n".join(own)
    return ModelInputs(files, text, told)


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


def _attachments(turn: Turn) -> Sequence[Attachment]:
    """Return the files that are attached to the task, and those of its envelope, each once."""
    envelope = turn.relatives.envelope
    every = (*turn.task.attachments, *(envelope.attachments if envelope is not None else ()))
    return list({item.uri: item for item in every}.values())


def _place_in_plan(task: Task, root: Task, notes: str) -> str:
    """Return the operator's objective and the task's place in the plan, if another task planned it."""
    if task.parent_task_id is None or root is task:
        return ""
    lines = ["## The operator's objective, of which this task is a part", root.objective]
    return "\n".join([*lines, *(["", "## The plan", notes] if notes else [])])


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
