"""Running a pipeline through the real board, one turn after the other, with a scripted advisor or none."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from fireswarm.contracts.swarm.task import Task, TaskStatus
from fireswarm.llm.providers.scripted import ScriptedModel
from fireswarm.pipelines.loading import load_pipelines
from fireswarm.runs.make_mind import ADVISOR_FILE, make_mind, prompt_file
from fireswarm.settings.packaged import packaged_path
from fireswarm.skills.packs.catalog import load_catalog
from fireswarm.storage.documents.build import parse_task
from fireswarm.storage.documents.queries import chain
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.turn.turn import run_turn
from tests.support.swarm import ROLES, SwarmRig

DEMO = packaged_path("pipelines") / "node" / "demo"


def shipped_advisor() -> Callable[[Any], dict[str, Any]]:
    """The advisor that ships with the demo's source."""
    spec = importlib.util.spec_from_file_location("shipped_advisor", DEMO / "advisor.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.answer


def advised(swarm: SwarmRig, script: Any | None, **settings: Any) -> SwarmParts:
    """The swarm's core with the shipped skills, and an advisor that answers by *script*; None: no model at all."""
    given = swarm.core.settings.model_validate(swarm.core.settings.model_dump() | settings)
    pipelines, catalog = load_pipelines([packaged_path("pipelines")], load_catalog([packaged_path("skills")]))
    mind = None
    if script is not None:
        model = ScriptedModel(script)
        mind = make_mind(given, catalog, swarm.clock, given.root, environment={}, store=swarm.store, model=model)
    advisor = prompt_file(packaged_path("roles"), ADVISOR_FILE)
    return replace(swarm.core, settings=given, catalog=catalog, mind=mind, advisor=advisor, pipelines=pipelines)


async def submit(swarm: SwarmRig, source: Path, **context: Any) -> Task:
    """Ask for a node made from *source*."""
    return await swarm.submit(
        "make a node", role="architect", skill="node-pipeline", context={"source": str(source), **context}
    )


async def one_turn(swarm: SwarmRig, core: SwarmParts) -> Task | None:
    """Let whoever has something to do work for one turn; None when nobody has."""
    for role in ROLES:
        held = await swarm.claim(f"{role}-1", role)
        for lease in held:
            ending = await run_turn(lease, core)
            await swarm.board.settle(lease, ending.outcome, ending.writes)
            return await swarm.task(lease.task.task_id)
    return None


async def work(swarm: SwarmRig, core: SwarmParts, turns: int = 60) -> list[Task]:
    """Work until nobody has anything to do; the tasks of all turns, in order."""
    done: list[Task] = []
    while len(done) < turns and (task := await one_turn(swarm, core)) is not None:
        done.append(task)
    return done


async def family(swarm: SwarmRig, root: Task) -> dict[str, Task]:
    """All tasks of a run by their step's name."""
    found = await swarm.store.query(chain(root.task_id))
    tasks = [parse_task(item.data, item.path) for item in found]
    return {task.plan_key or "root": task for task in tasks}


async def files(swarm: SwarmRig, task: Task) -> dict[str, str]:
    """The files that a task handed on, by name."""
    assert task.result is not None, task.summary
    found = {artifact.name: artifact for artifact in task.result.artifacts}
    return {name: (await swarm.core.blobs.get(artifact.uri or "")).decode() for name, artifact in found.items()}


def ended(task: Task) -> bool:
    """Whether a task is done."""
    return task.status is TaskStatus.DONE
