"""Run skills with code for the stand-alone agent, in the folder of its run."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import anyio.to_thread

from fireswarm.agent.outputs import output_artifacts
from fireswarm.agent.task import AgentTask
from fireswarm.clocks import ServerClock
from fireswarm.contracts.grant import Grant
from fireswarm.contracts.skills.artifact import OUTPUT_FOLDER, WORKDIR_URI, Artifact, is_link
from fireswarm.contracts.skills.skill import ChildResult, PlannedTask, SkillRequest, SkillResult, SkillState
from fireswarm.errors import SkillFailed
from fireswarm.mind import Mind, gate
from fireswarm.redaction import Redactor
from fireswarm.runs.skill_runner import SkillRunner
from fireswarm.skills.packs.catalog import Catalog, Skill
from fireswarm.skills.running.denied_reads import DeniedReads
from fireswarm.skills.running.execute import CodeRules

ROLE = "agent"

MAX_CLEANED_BYTES = 20_000_000
"""Larger files of a skill are not searched for secrets."""

INSTEAD = (
    "This skill needs its own task, which only a swarm provides. Use ask_user for missing input and do the work "
    "yourself."
)
"""Advice to a model that calls a skill which needs its own task."""


@dataclass(slots=True)
class AgentSkills:
    """Runs skills in the folder of a run. The tasks that a skill plans run here, one after another.

    Without a ``path``, a skill works on the current folder. A run that asks for input ends, so skills get no answers
    here.
    """

    runner: SkillRunner
    grant: Grant
    catalog: Catalog

    @classmethod
    def of_run(cls, work: AgentTask, folder: Path, mind: Mind, grant: Grant) -> AgentSkills:
        """Return the skills of the run in *folder*."""
        runtime = mind.settings.runtime
        artifacts = folder / "artifacts"
        request = SkillRequest(
            task_id=folder.name,
            session_hash=work.session,
            objective=work.task,
            role=ROLE,
            context={"path": str(grant.cwd), **work.context},
            constraints={"read_only": grant.profile == "read_only"},
            roles=(ROLE,),
            workdir=artifacts.resolve(),
            now=ServerClock().now(),
        )
        denied = DeniedReads.of(grant)
        rules = CodeRules(runtime.confinement, runtime.pass_environment, runtime.readable, artifacts, denied)
        publish = partial(_publish, mind.redact, denied)
        runner = SkillRunner(request, rules, INSTEAD, publish, grant.cwd, timeout_seconds=runtime.timeout_seconds)
        return cls(runner, grant, mind.catalog)

    async def run(self, skill: Skill, params: Mapping[str, Any], answers: Mapping[str, Any]) -> SkillResult:
        """Run *skill* with the parameters *params*. Raises SkillFailed and SkillRefused."""
        result = await self.runner.run(skill, params, answers)
        if result.state is not SkillState.DELEGATING:
            return result
        children = tuple([await self._part(skill, part) for part in result.tasks])
        return await self.runner.run_with(skill, params, children=children)

    async def _part(self, skill: Skill, part: PlannedTask) -> ChildResult:
        """Run one planned task of a skill and return it as the board would."""
        if part.skill is None:
            raise SkillFailed(
                f"{skill.name} delegates work to the role {part.assigned_to}, which needs a swarm: `swarm up`"
            )
        planned = self.catalog.get(part.skill)
        decision = gate.decide(gate.skill_call(planned, part.context), self.grant)
        if not isinstance(decision, gate.Allow):
            raise SkillFailed(f"{skill.name} plans work of the skill {planned.name}: {decision.reason}")
        workdir = self.runner.request.workdir / skill.name / part.key
        done, _ = await self.runner.run_once(workdir, planned, part.context)
        return ChildResult(
            task_id=f"{self.runner.request.task_id}/{part.key}",
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


async def _publish(
    redact: Redactor, denied: DeniedReads, result: SkillResult, workdir: Path
) -> tuple[SkillResult, tuple[Artifact, ...]]:
    """Remove secrets from the files of a skill, and return its result with all of its files as artifacts."""
    await anyio.to_thread.run_sync(clean_files, workdir, redact)
    named = [_place_in_workdir(item, workdir) for item in result.artifacts]
    known = {item.uri for item in named}
    others, note = await anyio.to_thread.run_sync(output_artifacts, workdir / OUTPUT_FOLDER, redact, denied)
    insights = (*result.insights, note) if note else result.insights
    artifacts = (*named, *(item for item in others if item.uri not in known))
    return result.model_copy(update={"artifacts": artifacts, "insights": insights}), artifacts


def _place_in_workdir(artifact: Artifact, workdir: Path) -> Artifact:
    if artifact.uri is None or is_link(artifact.uri):
        return artifact
    path = (workdir / unquote(artifact.uri.removeprefix(WORKDIR_URI).removeprefix("file://"))).resolve()
    if not artifact.uri.startswith((WORKDIR_URI, "file://")) or not path.is_relative_to(workdir.resolve()):
        raise SkillFailed(f"artifact {artifact.name or artifact.type!r} names {artifact.uri}: no file of the workdir")
    content = hashlib.sha256(path.read_bytes()).hexdigest() if artifact.sha256 and path.is_file() else artifact.sha256
    return artifact.model_copy(update={"uri": path.as_uri(), "sha256": content})


def clean_files(folder: Path, redact: Redactor) -> None:
    """Remove secrets from the text files of a skill."""
    found = [Path(where, name) for where, _, names in os.walk(folder) for name in names]  # it follows no links
    for path in sorted(found):
        state = path.lstat()
        if not stat.S_ISREG(state.st_mode) or state.st_nlink > 1 or state.st_size > MAX_CLEANED_BYTES:
            continue
        try:
            text = path.read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            continue
        if (cleaned := redact.text(text)) != text:
            path.write_bytes(cleaned.encode("utf-8"))
