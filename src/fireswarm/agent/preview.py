"""Compose the exact first request of a run, without sending it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fireswarm.agent.run import AgentTask
from fireswarm.contracts.ports import ChatModel
from fireswarm.contracts.swarm.event import EventType
from fireswarm.errors import NotFound
from fireswarm.llm.client import announce, request_of
from fireswarm.llm.prompt import Transcript
from fireswarm.mind.assignment import Assignment
from fireswarm.mind.briefing import Briefing
from fireswarm.settings import AgentSettings
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
    async def step(self, name: str, run: Any, *, idempotent: bool, skipped: Any = None) -> dict[str, Any]:
        raise AssertionError("a preview has no steps")


async def first_request(
    settings: AgentSettings, catalog: Catalog, task: AgentTask, system: str, cwd: Path, model: ChatModel
) -> dict[str, Any]:
    """Return the first request of a run as the provider's adapter would send it.

    Raises NotFound if no skill fits the task.
    """
    assignment = Assignment(
        task.task, system, cwd, context=task.context, material=task.material, named=task.skill, dry_run=True
    )
    recorder = _SilentRecorder()
    briefing = Briefing(settings.skills, catalog, Router(catalog), assignment, recorder)
    if not await briefing.prefilter():
        raise NotFound("no skill matches the task, so there would be no request: add one, or lower prefilter_min_score")
    talk = Transcript(system)
    talk.say(*briefing.opening())
    announce(talk, settings.model, recorder, 1)
    native = model.knows_schema and settings.model.structured_output_mode != "json_only"
    return model.preview(request_of(talk, settings.model, native=native))
