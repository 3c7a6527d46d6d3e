"""A swarm whose roles ask the providers' own adapters, at the local server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from fireswarm.contracts.swarm.task import Task
from fireswarm.llm.spend import StoreLedger
from fireswarm.mind import Mind
from fireswarm.runs.make_mind import close_model, make_mind
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.roles.card import check_models
from tests.integration.test_thinking import thinking
from tests.support.providers import FakeProviders, Received, Reply
from tests.support.swarm import SwarmRig

KEYS = {"ANTHROPIC_API_KEY": "test-key", "GEMINI_API_KEY": "test-key"}
LOOK = Reply("I look.", thinking="First I look.", calls=(("list_files", {"path": ".", "glob": "*.txt"}),))
MINDS: list[Mind] = []


@asynccontextmanager
async def serving() -> AsyncGenerator[FakeProviders]:
    """Serve all providers, and close the models that were opened."""
    async with FakeProviders((Reply("counted"),)).serving() as server:
        yield server
        while MINDS:
            await close_model(MINDS.pop())


def reached(
    swarm: SwarmRig,
    folder: Path,
    served: FakeProviders,
    environment: Mapping[str, str] = KEYS,
    *,
    model: Mapping[str, Any] | None = None,
    **settings: Any,
) -> SwarmParts:
    """Return the swarm's core with the providers' own adapters, at the local server."""
    providers = {
        "anthropic": {"base_url": served.url},
        "gemini": {"base_url": served.url},
        "openai": {"base_url": f"{served.url}/v1"},
    }
    given = {"runtime": {"max_llm_retries": 0}, **settings, "model": {"providers": providers, **(model or {})}}
    parts = thinking(swarm, ["unused"], folder, **given)
    ledger = StoreLedger(swarm.store, swarm.clock, "s1", "agent-x")
    mind = make_mind(
        parts.settings, parts.catalog, swarm.clock, folder, environment=environment, store=swarm.store, ledger=ledger
    )
    MINDS.append(mind)
    check_models(parts.settings, parts.roles)
    return replace(parts, mind=mind, pending=ledger)


async def run_of(swarm: SwarmRig, task: Task) -> dict[str, Any]:
    return (await swarm.store.get(f"agent_runs/{task.task_id}.{task.epoch}")).data or {}


def asked(served: FakeProviders) -> list[str]:
    return [request.model for request in served.calls]


def model_of_task(request: Received) -> tuple[str, Any]:
    return request.model, request.body.get("output_config")
