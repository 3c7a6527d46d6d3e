"""Store the outputs of a turn: files and large values in blobs, the rest in the settling commit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from fireswarm.contracts.skills.artifact import STORED_VALUE, WORKDIR_URI, Artifact
from fireswarm.contracts.skills.skill import SkillResult
from fireswarm.contracts.swarm.outcome import Handoff, Outcome
from fireswarm.contracts.swarm.run import MAX_INLINE_PAYLOAD_BYTES
from fireswarm.errors import SkillFailed
from fireswarm.swarm.roles.hooks import HOOKS, NO_HOOKS
from fireswarm.swarm.turn.state import Turn


async def publish_artifacts(turn: Turn, result: SkillResult, workdir: Path) -> SkillResult:
    """Move files and large values to the blob store, and restore the URI of each local copy of an input."""
    if not result.artifacts:
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
            update["uri"] = turn.origins.get(artifact.uri, artifact.uri)
        published.append(artifact.model_copy(update=update))
    shutil.rmtree(workdir, ignore_errors=True)
    return result.model_copy(update={"artifacts": tuple(published)})


async def gather_writes(turn: Turn, result: SkillResult, outcome: Outcome) -> None:
    """Add to the settling commit: the role's writes, facts, replies, and the envelopes of planned tasks."""
    task, swarm = turn.task, turn.swarm
    for writes_of in HOOKS.get(task.assigned_to, NO_HOOKS).writes:
        turn.writes += writes_of(swarm.memory, task, result)
    if result.facts:
        turn.writes += swarm.memory.remember(task, result.facts)
    if result.replies:
        turn.writes += await swarm.mailbox.replies(task, result.replies)
    if isinstance(outcome, Handoff):
        births = swarm.board.births(turn.lease, outcome)
        turn.writes += swarm.mailbox.handoffs(task, births, outcome.result, outcome.notes)


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


def _file_in(workdir: Path, name: str, artifact: Artifact) -> Path:
    path = (workdir / name).resolve()
    if not path.is_relative_to(workdir.resolve()) or not path.is_file():
        raise SkillFailed(f"artifact {artifact.name or artifact.type!r} names {name!r}: no such file in the workdir")
    return path
