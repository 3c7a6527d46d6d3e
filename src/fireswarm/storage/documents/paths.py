"""Collection names and document paths."""

from __future__ import annotations

TASKS = "agent_tasks"

KEYS = "agent_task_keys"
"""One document for each piece of work of a session, with the id of the task that owns it."""


RUNS = "agent_runs"


MAILBOX = "agent_mailbox"


MEMORY = "mcp_memory"

VERSIONS = "fact_versions"
"""Subcollection of each fact with the values that it has had."""


VECTORS = "memory_vectors"
"""One document for each fact whose text an embedding model has turned into a vector, with the fact's id."""


FILES = "agent_files"


CONTEXTS = "agent_contexts"


AGENTS = "agents"


REQUESTS = "api_requests"

NOTICES = "agent_notices"
"""One document for each event that a webhook or command is told of, with its delivery."""

SCHEDULES = "agent_schedules"
"""One document for each objective that is submitted again and again."""

JOURNAL = "journal"
"""Subcollection of each run with the pages of its events."""

POCKET, ANSWERED = "pocket_facts", "answered_messages"
"""Subcollections of each conversation: stored facts, and handled messages."""


FREE_FIELDS = frozenset({
    "objective", "context", "result", "answers", "answered", "questions", "summary", "error", "handoff_reason",
    "expected_outcome", "attachments", "events", "artifacts", "live", "usage", "payload", "value", "text", "message",
    "keywords", "source", "evidence", "wrong_reason", "content", "capabilities", "instructions", "system_prompt",
    "asks", "restarted", "task", "note",
})  # fmt: skip
"""Fields with text from people, skills and models; all other fields are set by the code."""

GIVEN_FIELDS = frozenset({"context", "answers", "answered", "payload", "task"})
"""Inputs of a task, under names that people choose.

A password that a skill asks for is not redacted, unless its format is known.
"""


def task_path(task_id: str) -> str:
    """Path of a task's document."""
    return f"{TASKS}/{task_id}"


def key_path(key_id: str) -> str:
    """Path of the document with the id of the task that owns a piece of work."""
    return f"{KEYS}/{key_id}"


def run_path(run_id: str) -> str:
    """Path of a run's document."""
    return f"{RUNS}/{run_id}"


def notice_path(notice_id: str) -> str:
    """Path of a notice."""
    return f"{NOTICES}/{notice_id}"


def schedule_path(schedule_id: str) -> str:
    """Path of a schedule."""
    return f"{SCHEDULES}/{schedule_id}"


def message_path(message_id: str) -> str:
    """Path of a mailbox message."""
    return f"{MAILBOX}/{message_id}"


def agent_path(agent_id: str) -> str:
    """Path of a stored agent."""
    return f"{AGENTS}/{agent_id}"
