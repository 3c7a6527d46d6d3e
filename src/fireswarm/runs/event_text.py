"""Events of runs in words, on one line each, for every face. The events come from the log, which has no secrets."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from fireswarm.contracts.limits import clip
from fireswarm.contracts.llm.decision import StepStatus
from fireswarm.contracts.swarm.event import EventType
from fireswarm.runs.steps import STEP_FAILED, step_name

Payload = Mapping[str, Any]

QUESTION = "question"
"""The kind that readers are shown for a step that stopped to ask a person: it did not fail."""

_STOPPED_TO_ASK = "NeedsAnswer:"
"""Beginning of the error of a step that stopped until a person answers."""

_ALLOW = re.compile(r"Allow [^:]{1,100}: ")
"""Beginning of a request for approval; what would be executed follows."""

_STEPS = {
    "llm": "call of the model",
    "budget": "budget that is left",
    "act": "action",
    "ask": "question to a person",
    "approve": "decision of a person about action",
    "asked": "note of the question about action",
    "denied": "refusal of action",
}
"""Kinds of steps in words."""


def describe_event(kind: EventType, payload: Payload) -> str:
    """Return an event in words, on one line; "" if its type says all."""
    tell = _TOLD.get(kind)
    return tell(payload) if tell else ""


def describe_journal_event(payload: Payload) -> str:
    """Return an event of the journal in words: its step, of which ``0/llm:1.0:7423`` is a call, and what failed."""
    head, _, place = step_name(str(payload.get("step", ""))).partition(":")
    kind = head.rpartition("/")[2]
    step = f"{_STEPS.get(kind, kind)} {place.partition('/')[0].partition(':')[0]}".strip()
    reason = str(payload.get("error") or payload.get("reason") or "")
    return ": ".join(text for text in (step, reason) if text)


def describe_question(kind: str, payload: Payload) -> str:
    """Return in words what a step asked a person that stopped until the answer; "" for any other event."""
    error = str(payload.get("error") or "")
    if kind != STEP_FAILED or not error.startswith(_STOPPED_TO_ASK):
        return ""
    text = " ".join(error.removeprefix(_STOPPED_TO_ASK).split())
    if not text:
        return "asked a person"
    request = _ALLOW.match(text)
    return f"asked for approval: {text[request.end() :]}" if request else f"asked a person: {text}"


def _candidates(payload: Payload) -> str:
    named = [f"{found['skill_name']} {found['score']:g}" for found in payload.get("candidates", [])[:4]]
    return ", ".join(named) or "no candidate"


def _describe_disclosure(payload: Payload) -> str:
    files = payload.get("files", [])
    refused = payload.get("refused") or []
    named = ", ".join(str(file["path"]) for file in files[:3]) + (
        f" and {len(files) - 3} more" if len(files) > 3 else ""
    )
    end = f"; refused: {refused[0]}" if refused else ""
    return f"stage {payload.get('stage')}: {named} ({payload.get('bytes')} bytes, {payload.get('tokens')} tokens){end}"


def _describe_retry(payload: Payload) -> str:
    """Return how a call is repeated: after a pause, or by another model."""
    if "model" in payload:
        return f"{payload['model']} is asked now"
    return f"attempt {payload.get('attempt')} in {payload.get('pause_seconds')} s"


def _describe_answer(payload: Payload) -> str:
    usd = payload.get("usd")
    price = f", {usd:.5f} USD" if isinstance(usd, (int, float)) else ", no price known"
    cached = f", {payload['cached_tokens']} cached" if payload.get("cached_tokens") else ""
    return (
        f"{payload.get('latency_ms')} ms, {payload.get('input_tokens')} tokens in{cached}, "
        f"{payload.get('output_tokens')} out{price}"
    )


def _describe_decision(payload: Payload) -> str:
    if not payload.get("ok"):
        return f"not a decision: {payload.get('fault')}"
    actions = ", ".join(payload.get("actions", [])) or "no action"
    return f"{actions}: {clip(str(payload.get('reasoning_summary', '')), 160)}"


def _describe_executed(payload: Payload) -> str:
    params: Payload = payload.get("params", {})
    what = params.get("command") or params.get("skill") or params.get("tool") or params.get("question") or ""
    out = payload.get("stdout_summary") or payload.get("stderr_summary") or ""
    status = str(payload.get("status"))
    ended = status if status == StepStatus.INTERRUPTED else f"{status} ({payload.get('exit_code')})"
    return f"{payload.get('type')} `{clip(str(what), 80)}`: {ended} {clip(str(out), 100)}"


_TOLD: dict[EventType, Callable[[Payload], str]] = {
    EventType.RUN_STARTED: lambda p: (
        f"{clip(str(p.get('task')), 120)} ({p.get('provider')} {p.get('model')}, {p.get('mode')})"
    ),
    EventType.SKILL_CATALOG_LOADED: lambda p: f"{p.get('skills')} skills, {p.get('left_out_count')} left out",
    EventType.SKILL_PREFILTER_COMPLETED: _candidates,
    EventType.SKILL_DISCLOSURE_LOADED: _describe_disclosure,
    EventType.PROMPT_BUDGET_COMPUTED: lambda p: (
        f"{p.get('allocated_prompt_tokens')} of {p.get('max_context_tokens')} tokens"
    ),
    EventType.PROMPT_COMPOSED: lambda p: f"{p.get('messages')} messages",
    EventType.LLM_REQUEST_SENT: lambda p: (
        f"{p.get('provider')} {p.get('model')}, attempt {p.get('attempt')}"
        + (f", with the message: {clip(str(p['said']), 160)}" if p.get("said") else "")
    ),
    EventType.LLM_RETRY_SCHEDULED: _describe_retry,
    EventType.LLM_RESPONSE_RECEIVED: _describe_answer,
    EventType.LLM_REQUEST_FAILED: lambda p: str(p.get("error")),
    EventType.LLM_DECISION_DECODED: _describe_decision,
    EventType.SKILL_INVOCATION_STARTED: lambda p: clip(str(p.get("reason", "")), 160),
    EventType.SKILL_STEP_EXECUTED: _describe_executed,
    EventType.STEP_RETRY_SCHEDULED: lambda p: f"step {p.get('step_id')} once more",
    EventType.SKILL_INVOCATION_FINISHED: lambda p: clip(str(p.get("reason", "")), 160),
    EventType.SIGNAL_RECEIVED: lambda p: str(p.get("signal")),
    EventType.GRACEFUL_SHUTDOWN_STARTED: lambda p: f"within {p.get('grace_seconds')} s",
    EventType.RUN_FINISHED: lambda p: (
        f"{p.get('mode')}: {p.get('turns')} turns, {p.get('tokens')} tokens, {p.get('usd')} USD"
    ),
    EventType.RUN_FAILED: lambda p: f"{p.get('reason')}: {p.get('error')}",
}
