"""Events table of docs/reference/observability.md, in the order of the contract. A test compares it with real runs."""

from __future__ import annotations

from typing import NamedTuple

from fireswarm.contracts.swarm.event import EventType


class About(NamedTuple):
    """Occasion of an event and the keys of its payload; ``turn`` only for an event of a turn."""

    when: str
    payload: tuple[str, ...]


_CALL = ("turn", "provider", "model", "attempt")
_END = ("reason", "turns", "skill", "calls", "tokens", "usd", "unpriced_calls")

EVENTS: dict[EventType, About] = {
    EventType.RUN_STARTED: About(
        "a run begins; `mode` is `run` or `dry_run`",
        ("task", "mode", "provider", "model", "profile", "max_turns"),
    ),
    EventType.SKILL_CATALOG_LOADED: About(
        "the skills are loaded; skipped ones and accepted faults with their reasons",
        ("skills", "left_out", "left_out_count", "warnings"),
    ),
    EventType.SKILL_PREFILTER_COMPLETED: About(
        "candidates are chosen: `scored`, `named` by the task, or `fallback_all_skills`; each has its score and reason",
        ("strategy", "candidates"),
    ),
    EventType.SKILL_DISCLOSURE_LOADED: About(
        "material of a skill was shown: stage 0 to 3, the exact files with bytes and tokens",
        ("stage", "skill", "files", "bytes", "tokens", "offered", "refused"),
    ),
    EventType.PROMPT_BUDGET_COMPUTED: About(
        "before a call: allocation of the prompt's tokens, and trimmed parts",
        (
            "turn",
            "max_context_tokens",
            "response_headroom_tokens",
            "allocated_prompt_tokens",
            "allocated_disclosure_tokens",
            "components",
            "trimmed",
            "counted_by",
        ),
    ),
    EventType.PROMPT_COMPOSED: About("the prompt is complete", ("turn", "messages", "tokens")),
    EventType.LLM_REQUEST_SENT: About(
        "a request is sent; `native`: the provider enforces the schema", (*_CALL, "native")
    ),
    EventType.LLM_RETRY_SCHEDULED: About(
        "a call will be repeated after this pause; `model`: by this model, since the one before cannot be reached",
        ("turn", "attempt", "pause_seconds"),
    ),
    EventType.LLM_RESPONSE_RECEIVED: About(
        "an answer arrived; `input_tokens` counts the whole prompt, `usd` is null without a price",
        (
            *_CALL,
            "latency_ms",
            "input_tokens",
            "output_tokens",
            "cached_tokens",
            "thinking_tokens",
            "usd",
            "stop",
            "chars",
        ),
    ),
    EventType.LLM_REQUEST_FAILED: About(
        "a call failed, with the provider's status and message", (*_CALL, "status", "retryable", "error")
    ),
    EventType.LLM_DECISION_DECODED: About(
        "an answer was decoded: the decision, or with `ok` false its fault; `attempt` 1 is the repair",
        (
            "turn",
            "attempt",
            "ok",
            "fault",
            "selected_skill",
            "reasoning_summary",
            "required_disclosure_paths",
            "actions",
        ),
    ),
    EventType.SKILL_INVOCATION_STARTED: About(
        "a skill is selected, with the reason", ("turn", "skill", "from", "reason")
    ),
    EventType.SKILL_STEP_EXECUTED: About(
        "an action was executed: `ok`, `failed`, `timeout` or `refused`, with exit code and cleaned output",
        (
            "turn",
            "skill",
            "type",
            "params",
            "step_id",
            "exit_code",
            "stdout_summary",
            "stderr_summary",
            "retry_count",
            "status",
        ),
    ),
    EventType.STEP_RETRY_SCHEDULED: About("a failed step is repeated once", ("step_id", "retry")),
    EventType.SKILL_INVOCATION_FINISHED: About("the skill ends: a handoff, or the end of the run", ("skill", "reason")),
    EventType.SIGNAL_RECEIVED: About("SIGINT or SIGTERM arrived", ("signal",)),
    EventType.GRACEFUL_SHUTDOWN_STARTED: About("the run has `grace_seconds` to end", ("grace_seconds",)),
    EventType.RUN_FINISHED: About(
        "the run ended: `mode` is `finished`, `dry_run`, `input_required` or `delegating`", (*_END, "answer", "mode")
    ),
    EventType.RUN_FAILED: About("the run failed: `reason` is a stable word", (*_END, "error")),
}
