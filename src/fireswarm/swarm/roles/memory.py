"""The memory role: recall the session's facts and store session summaries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fireswarm.contracts.ports import Write
from fireswarm.contracts.skills.skill import Fact, SkillResult
from fireswarm.contracts.swarm.task import Task
from fireswarm.storage.memory import Memory

MEMORY_ROLE = "memory"
SUMMARY = "session_summary"
"""Type of an artifact that is stored as the session's summary document."""


def query_of(task: Task) -> str:
    """Return the text by which facts for a task are found: its objective, and the texts in its context.

    Of a path only the name counts: its folders are on every task of a machine.
    """
    values = [item for value in task.context.values() for item in (value if isinstance(value, list) else [value])]
    return "\n".join([task.objective, *(_name_or_text(value) for value in values if isinstance(value, str))])


def _name_or_text(text: str) -> str:
    is_path = "/" in text and not any(char.isspace() for char in text) and "://" not in text
    return Path(text).name if is_path else text


async def recall_facts(memory: Memory, task: Task) -> tuple[Fact, ...]:
    """Return the session's facts that fit the task. Its bucket is part of the query."""
    return tuple(await memory.recall(task.session_hash, query_of(task)))


def summary_writes(memory: Memory, task: Task, result: SkillResult) -> Sequence[Write]:
    """Return the writes that store the result's session summaries."""
    summaries = [artifact for artifact in result.artifacts if artifact.type == SUMMARY]
    return [write for artifact in summaries for write in memory.summarise(task, artifact)]
