"""The events of a run, and their form in a line of ``events.jsonl``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from fireswarm.contracts.base import JsonObject, Stored, Timestamp


class EventType(StrEnum):
    """Event types, in the order of a run."""

    RUN_STARTED = "run_started"
    SKILL_CATALOG_LOADED = "skill_catalog_loaded"
    SKILL_PREFILTER_COMPLETED = "skill_prefilter_completed"
    SKILL_DISCLOSURE_LOADED = "skill_disclosure_loaded"
    PROMPT_BUDGET_COMPUTED = "prompt_budget_computed"
    PROMPT_COMPOSED = "prompt_composed"
    LLM_REQUEST_SENT = "llm_request_sent"
    LLM_RETRY_SCHEDULED = "llm_retry_scheduled"
    LLM_RESPONSE_RECEIVED = "llm_response_received"
    LLM_REQUEST_FAILED = "llm_request_failed"
    LLM_DECISION_DECODED = "llm_decision_decoded"
    SKILL_INVOCATION_STARTED = "skill_invocation_started"
    SKILL_STEP_EXECUTED = "skill_step_executed"
    STEP_RETRY_SCHEDULED = "step_retry_scheduled"
    SKILL_INVOCATION_FINISHED = "skill_invocation_finished"
    SIGNAL_RECEIVED = "signal_received"
    GRACEFUL_SHUTDOWN_STARTED = "graceful_shutdown_started"
    RUN_FINISHED = "run_finished"
    RUN_FAILED = "run_failed"


class EventRecord(Stored):
    """One event. ``span_id`` counts the turn it belongs to; ``redaction_mode`` is ``redacted`` or ``debug``.

    Secrets are removed in both modes; ``debug`` also stores the bodies of requests and responses next to the log.
    """

    run_id: str
    trace_id: str
    span_id: str
    timestamp: Timestamp
    event_type: EventType
    payload: JsonObject = {}
    redaction_mode: str = "redacted"


@dataclass(frozen=True, slots=True)
class TaskEvent:
    """One event of a run. ``payload`` is JSON; docs/reference/observability.md lists the types."""

    task_id: str
    run_id: str
    role: str
    type: str
    at: datetime
    payload: JsonObject

    @classmethod
    def of_run(cls, run: Mapping[str, Any], event: Mapping[str, Any]) -> TaskEvent:
        """Return the event as a document of ``agent_runs`` or one of its pages holds it."""
        return cls(
            task_id=str(run.get("task_id")),
            run_id=str(run.get("run_id")),
            role=str(run.get("role")),
            type=str(event.get("type")),
            at=event["ts"],
            payload=dict(event.get("payload") or {}),
        )
