"""Compose the exact first request of a run, without sending it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fireswarm.agent.run import RunPlace, Watching, agent_assignment
from fireswarm.agent.task import AgentTask
from fireswarm.contracts.swarm.event import EventType
from fireswarm.errors import MissingApiKey
from fireswarm.llm.compaction import announce
from fireswarm.mind import Mind
from fireswarm.mind.run import Run


class _SilentRecorder:
    """Recorder that discards everything."""

    run_id = "preview"
    follows = False

    def event(self, kind: EventType, payload: Mapping[str, Any]) -> None: ...
    def words(self, text: str) -> None: ...
    def record_usage(self, usage: Mapping[str, Any]) -> None: ...
    def body(self, name: str, content: str) -> None: ...
    async def keep(self, name: str, text: str) -> str:
        raise AssertionError("a preview asks nobody")

    def has_begun(self, name: str) -> bool:
        return False

    def earlier_kinds(self, call: str) -> frozenset[str]:
        return frozenset()

    async def step(self, name: str, run: Any, *, idempotent: bool, skipped: Any = None) -> dict[str, Any]:
        raise AssertionError("a preview has no steps")


async def first_request(task: AgentTask, mind: Mind, place: RunPlace) -> dict[str, Any]:
    """Return the first request of a run as the provider's adapter would send it.

    Raises RunFailed if no skill fits the task and the settings require one, and MissingApiKey without a model.
    """
    run = Run.begin(mind, agent_assignment(task, mind, place, Watching()), _SilentRecorder())
    if run.asking is None or mind.client is None:
        raise MissingApiKey(mind.no_model)
    await run.prepare()
    announce(run.transcript, mind.settings.model, run.recorder, 1)
    return mind.client.model.preview(run.asking.next_request())
