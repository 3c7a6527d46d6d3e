"""Run skills with code for the stand-alone agent, in the folder of its run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from fireswarm.agent.outputs import output_artifacts
from fireswarm.clocks import ServerClock
from fireswarm.contracts.skills.artifact import OUTPUT_FOLDER, WORKDIR_URI, Artifact
from fireswarm.contracts.skills.skill import ChildResult, PlannedTask, SkillRequest, SkillResult, SkillState
from fireswarm.errors import SkillFailed
from fireswarm.mind.guard import refuse_skill
from fireswarm.redaction import Redactor
from fireswarm.settings.agent import RuntimeSettings
from fireswarm.skills.packs.catalog import Catalog, Skill
from fireswarm.skills.running.execute import CodeRules, run_skill
from fireswarm.swarm.conversations.inline_call import call_within
from fireswarm.swarm.records.run_files import RunLog

MAX_CLEANED_BYTES = 20_000_000
"""Larger files of a skill are not searched for secrets."""

INSTEAD = "It can have one on a swarm. Here, ask_user for what is missing, and do its work yourself."
"""Advice to a model that calls a skill which needs its own task."""


@dataclass(slots=True)
class SkillRunner:
    """Runs skills with code, and passes the artifacts of one to the next.

    The tasks that a skill plans run here, one after another; a swarm would distribute them.
    """

    context: Mapping[str, Any]
    task: str
    session: str
    log: RunLog
    cwd: Path
    catalog: Catalog
    runtime: RuntimeSettings
    outside_scripts: str
    redact: Redactor
    made: list[Artifact] = field(default_factory=list)

    async def run(self, skill: Skill, given: Mapping[str, Any], answers: Mapping[str, Any]) -> SkillResult:
        """Run *skill* with the parameters *given*. Without a ``path`` it works on the current folder.

        There are no *answers* to its questions here: a run that asks for input ends.
        """
        result = await self._once(skill, skill.name, given)
        if result.state is SkillState.DELEGATING:
            parts = [await self._part(skill, part) for part in result.tasks]
            result = await self._once(skill, skill.name, given, tuple(parts))
        self.made += result.artifacts
        return result

    async def _part(self, skill: Skill, part: PlannedTask) -> ChildResult:
        """Run one planned task of a skill and return it as the board would."""
        if part.skill is None:
            raise SkillFailed(f"{skill.name} hands work to the role {part.assigned_to}: that takes a swarm, `swarm up`")
        done = await self._once(self.catalog.get(part.skill), f"{skill.name}/{part.key}", part.context)
        return ChildResult(
            task_id=f"{self.log.run_id}/{part.key}",
            key=part.key,
            assigned_to=part.assigned_to,
            objective=part.objective,
            status="done" if done.state is SkillState.COMPLETED else "blocked",
            summary=done.summary,
            artifacts=done.artifacts,
            signals=done.signals,
            insights=done.insights,
            confidence=done.confidence,
        )

    async def _once(
        self, skill: Skill, folder: str, given: Mapping[str, Any], children: tuple[ChildResult, ...] = ()
    ) -> SkillResult:
        """Run a skill once in its folder, remove secrets from its files, and return its result.

        Raises SkillFailed after a timeout, and for a skill that may not run.
        """
        if reason := refuse_skill(skill, self.runtime.profile, self.outside_scripts):
            raise SkillFailed(reason)
        workdir = self.log.folder / "artifacts" / folder
        workdir.mkdir(parents=True, exist_ok=True)
        request = SkillRequest(
            task_id=self.log.run_id,
            session_hash=self.session,
            objective=self.task,
            role="agent",
            context={"path": str(self.cwd), **self.context, **given},
            constraints={"read_only": self.runtime.profile == "read_only"},
            artifacts=tuple(self.made),
            children=children,
            roles=("agent",),
            workdir=workdir.resolve(),
            now=ServerClock().now(),
        )
        rules = CodeRules(self.runtime.confinement, self.runtime.pass_environment, self.log.folder / "artifacts")
        run = partial(run_skill, rules=rules)
        try:
            with anyio.fail_after(self.runtime.timeout_seconds):
                result = await call_within(skill, request, INSTEAD, run)
        except TimeoutError as error:
            raise SkillFailed(f"skill {skill.name!r} was ended after {self.runtime.timeout_seconds:g} s") from error
        await anyio.to_thread.run_sync(clean_files, workdir, self.redact)
        named = [_place_in_workdir(item, workdir) for item in result.artifacts]
        known = {item.uri for item in named}
        others, note = await anyio.to_thread.run_sync(output_artifacts, workdir / OUTPUT_FOLDER, self.redact)
        insights = (*result.insights, note) if note else result.insights
        artifacts = (*named, *(item for item in others if item.uri not in known))
        return result.model_copy(update={"artifacts": artifacts, "insights": insights})


def _place_in_workdir(artifact: Artifact, workdir: Path) -> Artifact:
    if artifact.uri is None or not artifact.uri.startswith(WORKDIR_URI):
        return artifact
    path = (workdir / artifact.uri.removeprefix(WORKDIR_URI)).resolve()
    content = hashlib.sha256(path.read_bytes()).hexdigest() if artifact.sha256 and path.is_file() else artifact.sha256
    return artifact.model_copy(update={"uri": path.as_uri(), "sha256": content})


def clean_files(folder: Path, redact: Redactor) -> None:
    """Remove secrets from the text files of a skill."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_CLEANED_BYTES:
            continue
        try:
            text = path.read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            continue
        if (cleaned := redact.text(text)) != text:
            path.write_bytes(cleaned.encode("utf-8"))
