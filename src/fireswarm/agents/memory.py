"""The memory: compacts a session, stores its facts, indexes them, and brings them back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fireswarm.agents.role import RoleConfig, RoleHooks
from fireswarm.contracts.skill import Fact, SkillResult
from fireswarm.contracts.task import Task
from fireswarm.kit import Kit
from fireswarm.memory import keywords_of
from fireswarm.ports import Write

NAME = "memory"
SUMMARY = "session_summary"
"""Artifact type that is kept as a summary document of the session."""


async def run(cfg: RoleConfig) -> None:
    """Claim and work on this role's tasks until the process is told to stop."""
    await cfg.loop(NAME)


async def recalled(kit: Kit, task: Task) -> tuple[Fact, ...]:
    """The session's facts that match the task's objective and what its context names."""
    named = [str(value) for value in task.context.values() if isinstance(value, str)]
    folders = [Path(value).name for value in named if value]
    words: dict[str, Any] = dict.fromkeys(
        [*(name.lower() for name in folders if name), *keywords_of([task.objective, *named])]
    )
    return tuple(await kit.memory.recall(task.session_hash, list(words)))


def kept(kit: Kit, task: Task, result: SkillResult) -> Sequence[Write]:
    """The writes that keep a session summary."""
    return [
        write
        for artifact in result.artifacts
        if artifact.type == SUMMARY
        for write in kit.memory.summarise(task, artifact)
    ]


HOOKS = RoleHooks(facts=recalled, effects=kept)
