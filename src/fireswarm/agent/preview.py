"""Compose the exact first request of a run, without sending it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fireswarm.agent.folder_notes import describe_folder
from fireswarm.agent.run import AgentTask, RunFiles, agent_material, agent_system, agent_tools
from fireswarm.capabilities import Resolved
from fireswarm.contracts.ports import ChatModel
from fireswarm.contracts.skills.artifact import OUTPUT_FOLDER
from fireswarm.contracts.swarm.event import EventType
from fireswarm.errors import NotFound
from fireswarm.llm.client import announce, calls_tools, request_of
from fireswarm.llm.prompt import Transcript
from fireswarm.mind.assignment import Assignment
from fireswarm.mind.briefing import Briefing
from fireswarm.mind.calling.specs import offered_tools
from fireswarm.mind.permissions import Policy
from fireswarm.redaction import Redactor
from fireswarm.settings import AgentSettings
from fireswarm.settings.load import home_folder
from fireswarm.skills.packs.catalog import Catalog
from fireswarm.skills.routing.router import Router


class _SilentRecorder:
    """Recorder that discards everything."""

    run_id = "preview"
    follows = False

    def event(self, kind: EventType, payload: Mapping[str, Any]) -> None: ...
    def words(self, text: str) -> None: ...
    def record_usage(self, usage: Mapping[str, Any]) -> None: ...
    def body(self, name: str, content: str) -> None: ...
    def has_begun(self, name: str) -> bool:
        return False

    async def step(self, name: str, run: Any, *, idempotent: bool, skipped: Any = None) -> dict[str, Any]:
        raise AssertionError("a preview has no steps")


async def first_request(
    settings: AgentSettings, catalog: Catalog, task: AgentTask, given: Resolved, cwd: Path, model: ChatModel
) -> dict[str, Any]:
    """Return the first request of a run as the provider's adapter would send it.

    Raises NotFound if no skill fits the task of a model without tools.
    """
    by_tools = calls_tools(model, settings.model)
    outputs = (cwd / settings.logging.jsonl_dir / "RUN_ID" / OUTPUT_FOLDER).resolve()  # a preview has no run
    files = RunFiles(cwd, outputs, Redactor(), Policy(), settings.runtime.profile)
    assignment = Assignment(
        task.task,
        agent_system(cwd, given, calls_tools=by_tools),
        cwd,
        context=task.context,
        material=agent_material(describe_folder(cwd, home_folder()) if by_tools else "", task),
        named=task.skill,
        tools=agent_tools(files, given, calls_tools=by_tools),
        dry_run=True,
        outputs=outputs,
    )
    recorder = _SilentRecorder()
    briefing = Briefing(settings.skills, catalog, Router(catalog), assignment, recorder)
    strict = settings.skills.prefilter_zero_candidate_strategy == "fail_fast"
    if not await briefing.prefilter() and (strict or not by_tools):
        raise NotFound("no skill matches the task, so there would be no request: add one, or lower prefilter_min_score")
    if by_tools:
        talk = Transcript(assignment.system, offered_tools(assignment))
        talk.say(*briefing.opening_for_tools())
    else:
        talk = Transcript(assignment.system)
        talk.say(*briefing.opening())
    announce(talk, settings.model, recorder, 1)
    native = model.knows_schema and settings.model.structured_output_mode != "json_only"
    return model.preview(request_of(talk, settings.model, native=native))
