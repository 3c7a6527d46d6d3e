"""The memory role: recall the session's facts and store session summaries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fireswarm.contracts.ports import Write
from fireswarm.contracts.skills.skill import Fact, SkillResult
from fireswarm.contracts.swarm.task import Task
from fireswarm.storage.memory import Memory, keywords_of

MEMORY_ROLE = "memory"
SUMMARY = "session_summary"
"""Type of an artifact that is stored as the session's summary document."""


async def recall_facts(memory: Memory, task: Task) -> tuple[Fact, ...]:
    """Return the session's facts that match the task's objective and the names in its context."""
    texts = [str(value) for value in task.context.values() if isinstance(value, str)]
    names = [Path(text).name for text in texts if text]
    words: dict[str, Any] = dict.fromkeys(
        [*(name.lower() for name in names if name), *keywords_of([task.objective, *texts])]
    )
    return tuple(await memory.recall(task.session_hash, list(words)))


def summary_writes(memory: Memory, task: Task, result: SkillResult) -> Sequence[Write]:
    """Return the writes that store the result's session summaries."""
    summaries = [artifact for artifact in result.artifacts if artifact.type == SUMMARY]
    return [write for artifact in summaries for write in memory.summarise(task, artifact)]
