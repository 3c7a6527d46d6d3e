"""What a skill is given and what it leaves: results of other tasks in, artifacts and files out.

Large content travels through the blob store: a skill sees local files and whole values, documents hold URIs.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fireswarm.contracts.skills.artifact import Artifact, Signal
from fireswarm.contracts.skills.skill import ChildResult, Fact, SkillRequest, SkillResult
from fireswarm.contracts.swarm.envelope import Envelope
from fireswarm.contracts.swarm.run import MAX_INLINE_PAYLOAD_BYTES
from fireswarm.contracts.swarm.task import Task, TaskResult
from fireswarm.errors import SkillFailed
from fireswarm.storage.documents.paths import task_path
from fireswarm.storage.documents.read import parse_task_snapshot
from fireswarm.swarm.board import HeldLease
from fireswarm.swarm.swarm import Swarm

WORKDIR_URI = "workdir:"
STORED_VALUE = "application/vnd.fireswarm.value+json"
"""Mime type of an artifact whose value was too large for a document and waits in the blob store."""


@dataclass(slots=True)
class Exchange:
    """One turn's inputs and outputs. ``origins`` remembers where a local copy came from."""

    swarm: Swarm
    held: HeldLease
    envelope: Envelope | None = None
    origins: dict[str, str] = field(default_factory=dict)

    async def request(self, facts: tuple[Fact, ...]) -> SkillRequest:
        """Gather dependencies, children and the envelope into what the skill sees."""
        task, swarm = self.held.task, self.swarm
        dependencies, children = await self._relatives()
        if task.parent_task_id is not None:
            self.envelope = await swarm.mailbox.open(task, self.held.owner, self.held.epoch)
        artifacts: list[Artifact] = list(self.envelope.artifacts) if self.envelope else []
        signals: list[Signal] = list(self.envelope.signals) if self.envelope else []
        for dependency in dependencies:
            if dependency.result is not None:
                artifacts += dependency.result.artifacts
                signals += dependency.result.signals
        return SkillRequest(
            task_id=task.task_id,
            session_hash=task.session_hash,
            objective=task.objective,
            role=task.assigned_to,
            context=task.context,
            constraints=task.constraints.model_dump(),
            expected_outcome=task.expected_outcome,
            attachments=task.attachments,
            artifacts=tuple([await self.local(artifact) for artifact in artifacts]),
            signals=tuple(signals),
            children=tuple([await self._child(child) for child in children]),
            facts=facts,
            answers=task.answers,
            roles=tuple(sorted(swarm.roles)),
            workdir=swarm.workdir / self.held.run_id,
            now=swarm.clock.now(),
        )

    async def publish(self, result: SkillResult, workdir: Path) -> SkillResult:
        """Move files and large values to the blob store, and give copies back their own address."""
        if not result.artifacts and self.held.task.skill in self.swarm.inline:
            return result  # such a skill has no folder
        published: list[Artifact] = []
        for artifact in result.artifacts:
            update: dict[str, Any] = {} if artifact.source_task_id else {"source_task_id": self.held.task.task_id}
            if artifact.uri is None:
                update |= await self._store_large_value(artifact, len(published))
            elif artifact.uri.startswith(WORKDIR_URI):
                name = artifact.uri.removeprefix(WORKDIR_URI)
                path = _file_in(workdir, name, artifact)
                update["uri"] = await self.swarm.blobs.put_file(self._blob_name(name), path)
            else:
                update["uri"] = self.origins.get(artifact.uri, artifact.uri)
            published.append(artifact.model_copy(update=update))
        shutil.rmtree(workdir, ignore_errors=True)
        return result.model_copy(update={"artifacts": tuple(published)})

    async def _relatives(self) -> tuple[list[Task], list[Task]]:
        task = self.held.task
        paths = [task_path(task_id) for task_id in (*task.depends_on, *task.children)]
        found = {item.id: item for item in await self.swarm.store.get_many(paths)}
        read = {task_id: parse_task_snapshot(item) for task_id, item in found.items() if item.data is not None}
        return (
            [read[task_id] for task_id in task.depends_on if task_id in read],
            [read[task_id] for task_id in task.children if task_id in read],
        )

    async def _child(self, child: Task) -> ChildResult:
        result = child.result or TaskResult()
        return ChildResult(
            task_id=child.task_id,
            key=child.plan_key,
            assigned_to=child.assigned_to,
            objective=child.objective,
            status=child.status.value,
            summary=child.summary,
            artifacts=tuple([await self.local(artifact) for artifact in result.artifacts]),
            signals=result.signals,
            insights=result.insights,
            confidence=result.confidence,
        )

    async def local(self, artifact: Artifact) -> Artifact:
        """An artifact as a skill's process can read it: its content in a local file, or its value in place."""
        if artifact.mime == STORED_VALUE and artifact.uri is not None:
            value = json.loads(await self.swarm.blobs.get(artifact.uri))
            return artifact.model_copy(update={"value": value, "uri": None, "mime": None})
        if artifact.uri is None or artifact.uri.startswith("file://"):
            return artifact
        local = (await self.swarm.blobs.local_path(artifact.uri)).as_uri()
        self.origins[local] = artifact.uri
        return artifact.model_copy(update={"uri": local})

    async def _store_large_value(self, artifact: Artifact, number: int) -> dict[str, Any]:
        if artifact.value is None:
            return {}
        content = json.dumps(artifact.value).encode()
        if len(content) <= MAX_INLINE_PAYLOAD_BYTES:
            return {}
        uri = await self.swarm.blobs.put(self._blob_name(f"{artifact.type}-{number}.json"), content)
        return {"value": None, "uri": uri, "mime": STORED_VALUE, "size_bytes": len(content)}

    def _blob_name(self, name: str) -> str:
        return f"{self.held.task.session_hash}/{self.held.task.task_id}/{name}"


def _file_in(workdir: Path, name: str, artifact: Artifact) -> Path:
    path = (workdir / name).resolve()
    if not path.is_relative_to(workdir.resolve()) or not path.is_file():
        raise SkillFailed(
            f"artifact {artifact.name or artifact.type!r} names {name!r}, which is no file in the workdir"
        )
    return path
