"""Store the outputs of a turn: files and large values in blobs, the rest in the settling commit."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Collection
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import anyio.to_thread

from fireswarm.capabilities.workspace.artifacts import artifact_of
from fireswarm.capabilities.workspace.outputs import OutputFile, collect_outputs
from fireswarm.contracts.skills.artifact import OUTPUT_FOLDER, STORED_VALUE, WORKDIR_URI, Artifact, is_link
from fireswarm.contracts.skills.skill import SkillResult
from fireswarm.contracts.swarm.outcome import Handoff, Outcome
from fireswarm.contracts.swarm.run import MAX_INLINE_PAYLOAD_BYTES
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import FireswarmError, NotFound, SkillFailed
from fireswarm.redaction import Redactor, secret_values
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.roles.hooks import HOOKS, NO_HOOKS
from fireswarm.swarm.turn.given.files import remove_inputs
from fireswarm.swarm.turn.given.plan_notes import notes_of
from fireswarm.swarm.turn.given.workspace import denied_reads
from fireswarm.swarm.turn.state import Turn

KEPT_DAYS = 30
"""Minimum days that an output folder of an ended or deleted task is stored after its last change."""

MAX_LOOKS = 200
"""Maximum number of tasks that are looked up in a search for old output folders."""


async def publish_artifacts(turn: Turn, result: SkillResult, workdir: Path) -> SkillResult:
    """Move files and large values to the blob store, and restore the URI of each local copy of an input.

    Other files in the output folder of the workdir become artifacts as well.
    """
    if not result.artifacts and not _is_used(workdir):
        return result
    declared = {str(artifact.uri).removeprefix(WORKDIR_URI) for artifact in result.artifacts}
    outputs = await publish_folder(turn, workdir / OUTPUT_FOLDER, leave={workdir / name for name in declared})
    if not result.artifacts and not outputs:
        shutil.rmtree(workdir, ignore_errors=True)
        return result
    published: list[Artifact] = []
    for artifact in result.artifacts:
        update: dict[str, Any] = {} if artifact.source_task_id else {"source_task_id": turn.task.task_id}
        if artifact.uri is None:
            update |= await _store_large_value(turn, artifact, len(published))
        elif artifact.uri.startswith(WORKDIR_URI):
            name = artifact.uri.removeprefix(WORKDIR_URI)
            update["uri"] = await turn.swarm.blobs.put_file(_blob_name(turn, name), _file_in(workdir, name, artifact))
        else:
            update["uri"] = _known_uri(turn, artifact)
        published.append(artifact.model_copy(update=update))
    shutil.rmtree(workdir, ignore_errors=True)
    return result.model_copy(update={"artifacts": (*published, *outputs)})


def output_folder(parts: SwarmParts, task: Task) -> Path:
    """Return the output folder of a task, shared by all turns of its conversation on this machine."""
    return parts.workdir / OUTPUT_FOLDER / task.thread


async def remove_outputs(parts: SwarmParts, task: Task) -> None:
    """Remove the folders of a task that is done: its files are in the blob store.

    The output folder is renamed at once: a follow-up, which may begin any moment now, makes it anew.
    """
    folder = output_folder(parts, task)
    ended = folder.with_name(f"{folder.name}.{uuid4().hex}")
    if _is_used(folder):
        with contextlib.suppress(OSError):
            folder.rename(ended)
    await remove_inputs(parts, task.task_id)
    if _is_used(ended):
        await anyio.to_thread.run_sync(partial(shutil.rmtree, ended, ignore_errors=True))


async def remove_old_outputs(parts: SwarmParts) -> int:
    """Remove the output folders of tasks that have ended or are gone, and return how many.

    Such folders remain if a task was canceled, or if its worker was killed after the end of the task. Folders that
    changed in the last `KEPT_DAYS` are skipped without reading their tasks.
    """
    removed = 0
    before = (parts.clock.now() - timedelta(days=KEPT_DAYS)).timestamp()
    for folder in await anyio.to_thread.run_sync(_unchanged_since, parts.workdir / OUTPUT_FOLDER, before):
        try:
            ended = (await parts.board.get(folder.name)).status.terminal
        except NotFound:
            ended = True
        except FireswarmError:
            ended = False  # the task is unreadable: a person may repair it
        if ended:
            await remove_inputs(parts, folder.name)
            await anyio.to_thread.run_sync(partial(shutil.rmtree, folder, ignore_errors=True))
            removed += 1
    return removed


def _unchanged_since(folder: Path, before: float) -> list[Path]:
    """Return subfolders that did not change since a time, at most `MAX_LOOKS`, the oldest first."""
    found: list[tuple[float, Path]] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    changed = entry.stat(follow_symlinks=False).st_mtime
                    found += [(changed, Path(entry.path))] if changed < before else []
    except OSError:
        return []
    return [path for _, path in sorted(found)[:MAX_LOOKS]]


async def publish_folder(turn: Turn, folder: Path, leave: Collection[Path] = ()) -> tuple[Artifact, ...]:
    """Store the files of an output folder except those in *leave*, and return them as artifacts.

    Records the omitted files in the journal.
    """
    if not await anyio.to_thread.run_sync(_has_entries, folder):
        return ()
    mind = turn.swarm.mind
    redact = mind.redact if mind is not None else Redactor(secret_values(os.environ))
    with TemporaryDirectory(prefix="fireswarm-outputs-") as copies:
        found = await anyio.to_thread.run_sync(collect_outputs, folder, redact.text, Path(copies), denied_reads(turn))
        if found.note:
            turn.journal.note("outputs_left_out", text=redact.clean(found.note))
        skipped = {str(path.relative_to(folder)) for path in leave if path.is_relative_to(folder)}
        return tuple([await _publish(turn, file) for file in found.files if file.name not in skipped])


async def publish_output(turn: Turn, name: str, path: Path) -> str:
    """Store a file of the output folder and return its URI, which only depends on the task and the name."""
    return await turn.swarm.blobs.put_file(_blob_name(turn, f"{OUTPUT_FOLDER}/{name}"), path)


async def _publish(turn: Turn, file: OutputFile) -> Artifact:
    artifact = artifact_of(file, await publish_output(turn, file.name, file.path))
    return artifact.model_copy(update={"source_task_id": turn.task.task_id})


def _is_used(folder: Path) -> bool:
    """Return True if the folder was made; one call of the file system costs less than a thread."""
    return folder.exists()


def _has_entries(folder: Path) -> bool:
    try:
        return any(folder.iterdir())
    except OSError:
        return False


async def gather_writes(turn: Turn, result: SkillResult, outcome: Outcome) -> None:
    """Add to the settling commit: the role's writes, facts, replies, and the envelopes of planned tasks."""
    task, swarm = turn.task, turn.swarm
    for writes_of in HOOKS.get(task.assigned_to, NO_HOOKS).writes:
        turn.writes += writes_of(swarm.memory, task, result)
    if result.facts:
        turn.writes += await swarm.memory.remember(task, result.facts)
    if result.replies:
        turn.writes += await swarm.mailbox.replies(task, result.replies)
    if isinstance(outcome, Handoff):
        births = swarm.board.births(turn.lease, outcome)
        notes = {} if outcome.notes else notes_of(task, births)
        turn.writes += swarm.mailbox.handoffs(task, births, outcome.result, outcome.notes, notes)


async def _store_large_value(turn: Turn, artifact: Artifact, number: int) -> dict[str, Any]:
    if artifact.value is None:
        return {}
    content = json.dumps(artifact.value).encode()
    if len(content) <= MAX_INLINE_PAYLOAD_BYTES:
        return {}
    uri = await turn.swarm.blobs.put(_blob_name(turn, f"{artifact.type}-{number}.json"), content)
    return {"value": None, "uri": uri, "mime": STORED_VALUE, "size_bytes": len(content)}


def _blob_name(turn: Turn, name: str) -> str:
    return f"{turn.task.session_hash}/{turn.task.task_id}/{name}"


def _known_uri(turn: Turn, artifact: Artifact) -> str:
    """Return the stored URI of an artifact that the task was given, or a link. Raises SkillFailed for another URI.

    The next task's code may read what an artifact names, so a skill names only its own files and those it was given.
    """
    uri = str(artifact.uri)
    if uri in turn.origins or uri in turn.origins.values() or is_link(uri):
        return turn.origins.get(uri, uri)
    named = artifact.name or artifact.type
    raise SkillFailed(f"artifact {named!r} names {uri}: write the file to the workdir, and name it with workdir:")


def _file_in(workdir: Path, name: str, artifact: Artifact) -> Path:
    path = (workdir / name).resolve()
    if not path.is_relative_to(workdir.resolve()) or not path.is_file():
        raise SkillFailed(f"artifact {artifact.name or artifact.type!r} names {name!r}: no such file in the workdir")
    return path
