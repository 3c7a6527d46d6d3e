"""The spans of a swarm's work, by OpenTelemetry's conventions for GenAI, and the measurements made with them.

Each function belongs to one place in the code. Without a receiver, it does next to nothing.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from datetime import datetime

from fireswarm.contracts.llm.chat import ChatRequest, ChatResponse, StopReason, TokenUsage, ToolCall, ToolOutput
from fireswarm.contracts.swarm.lease import HeldLease
from fireswarm.contracts.swarm.outcome import Failed, Outcome, Retry
from fireswarm.contracts.swarm.task import Task, TaskStatus
from fireswarm.redaction import Redactor
from fireswarm.signals import content
from fireswarm.signals.current import (
    Attributes,
    AttributeValue,
    CurrentTurn,
    OpenSpan,
    Telemetry,
    telemetry_in_use,
    turn_at_work,
)
from fireswarm.signals.ids import ids_of_task
from fireswarm.signals.metrics import OPERATION_DURATION, TOKEN_USAGE, TURN_DURATION

PROVIDERS = {
    "anthropic": "anthropic",
    "anthropic-vertex": "gcp.vertex_ai",
    "anthropic-bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "gemini-vertex": "gcp.vertex_ai",
    "openai": "openai",
}
"""Names of the conventions for our providers; others keep their names."""

FINISH_REASONS = {
    StopReason.END: "stop",
    StopReason.MAX_TOKENS: "length",
    StopReason.REFUSAL: "content_filter",
    StopReason.CONTEXT: "length",
}


class SilentSpan:
    """A span that nobody receives."""

    def add(self, attributes: Attributes) -> None:
        """Do nothing."""

    def fail(self, error_type: str, message: str = "") -> None:
        """Do nothing."""


SILENT = SilentSpan()


class TurnSpan:
    """The span of a turn in progress, and its outcome."""

    __slots__ = ("_span", "outcome")

    def __init__(self, span: OpenSpan) -> None:
        self._span = span
        self.outcome = ""

    def end(self, outcome: Outcome) -> None:
        """Note how the turn ended."""
        self.outcome = type(outcome).__name__.lower()
        self._span.add({"fireswarm.outcome": self.outcome})
        if isinstance(outcome, (Failed, Retry)):
            self._span.fail(outcome.reason.value if isinstance(outcome, Failed) else "retry")


@contextlib.contextmanager
def turn_span(lease: HeldLease) -> Generator[TurnSpan]:
    """Record a turn, until its outcome is stored. Inside the block, it is the turn of all log entries."""
    task, telemetry = lease.task, telemetry_in_use.get()
    turn = CurrentTurn(task.trace.chain_id, task.task_id, lease.run_id)
    token = turn_at_work.set(turn)
    try:
        if telemetry is None:
            yield TurnSpan(SILENT)
            return
        began = time.perf_counter()
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": task.assigned_to,
            "gen_ai.agent.id": lease.owner,
            "gen_ai.conversation.id": task.thread,
            "fireswarm.task_id": task.task_id,
            "fireswarm.run_id": lease.run_id,
            "fireswarm.session": task.session_hash,
        }
        with telemetry.span(f"invoke_agent {task.assigned_to}", attributes, ids=turn.ids) as span:
            opened = TurnSpan(span)
            try:
                yield opened
            finally:
                measured = {"gen_ai.agent.name": task.assigned_to, "fireswarm.outcome": opened.outcome or "lost"}
                telemetry.measure(TURN_DURATION, time.perf_counter() - began, measured)
    finally:
        turn_at_work.reset(token)


def report_end(task: Task, status: TaskStatus, now: datetime) -> None:
    """Record the span of a task that has ended: of the whole objective, if it is the first task.

    The caller is whoever stored the end, so that it is recorded once.
    """
    telemetry = telemetry_in_use.get()
    if telemetry is None or not status.terminal:
        return
    ids = ids_of_task(task)
    attributes = {
        "gen_ai.conversation.id": task.thread,
        "fireswarm.task_id": task.task_id,
        "fireswarm.session": task.session_hash,
        "fireswarm.status": status.value,
    }
    if ids.parent:
        name, more = f"task {task.assigned_to}", {"fireswarm.role": task.assigned_to}
    else:
        name = f"invoke_workflow {task.assigned_to}"
        more = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": task.assigned_to}
    error = "" if status is TaskStatus.DONE else status.value
    telemetry.report(name, attributes | more, ids, task.created_at, now, error)


@dataclass(frozen=True, slots=True)
class AskedModel:
    """A model as its spans name it. ``cost`` returns the US dollars of a usage, or None without a price."""

    provider: str
    name: str
    redact: Redactor
    cost: Callable[[TokenUsage], float | None]


async def record_request(
    telemetry: Telemetry, asking: Awaitable[ChatResponse], request: ChatRequest, asked: AskedModel
) -> ChatResponse:
    """Await one request to a model and record it; each attempt is a span."""
    measured = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": PROVIDERS.get(asked.provider, asked.provider),
        "gen_ai.request.model": asked.name,
    }
    attributes: dict[str, AttributeValue] = {**measured, "gen_ai.request.max_tokens": request.max_tokens}
    if telemetry.captures_content:
        attributes |= content.of_request(request, asked.redact)
    began, failed = time.perf_counter(), dict[str, str]()
    try:
        with telemetry.span(f"chat {asked.name}", attributes, is_client=True) as span:
            response = await asking
            span.add(_describe(response, asked.cost(response.usage)))
            if telemetry.captures_content:
                span.add({"gen_ai.output.messages": content.of_response(response, asked.redact)})
    except BaseException as failure:  # raised again; a cancellation is an end too
        failed = {"error.type": type(failure).__name__}
        raise
    finally:
        telemetry.measure(OPERATION_DURATION, time.perf_counter() - began, measured | failed)
    for kind, tokens in (("input", response.usage.prompt_tokens), ("output", response.usage.output_tokens)):
        telemetry.measure(TOKEN_USAGE, tokens, {**measured, "gen_ai.token.type": kind})
    return response


def _describe(response: ChatResponse, usd: float | None) -> Attributes:
    """Return what is known of an answer, and its cost in US dollars if the model has a price."""
    usage = response.usage
    known: dict[str, AttributeValue | None] = {
        "gen_ai.response.model": response.model or None,
        "gen_ai.response.id": response.request_id or None,
        "gen_ai.response.finish_reasons": [FINISH_REASONS.get(response.stop, "error")],
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
        "fireswarm.cost_usd": usd,
    }
    return {name: value for name, value in known.items() if value is not None}


async def record_call(
    telemetry: Telemetry,
    calling: Awaitable[ToolOutput],
    call: ToolCall,
    redact: Redactor,
    suspends: tuple[type[Exception], ...],
) -> ToolOutput:
    """Await one call of a tool by a model, from the gate to the output, and record it.

    The exceptions *suspends* are no failures: the call goes on when a person or another task has answered.
    """
    suspended: Exception | None = None
    name = redact.clean(call.name)  # by the model, which may name a tool that does not exist
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.id": redact.clean(call.id),
        "gen_ai.tool.type": "function",
    }
    if telemetry.captures_content:
        attributes["gen_ai.tool.call.arguments"] = content.of_arguments(call, redact)
    with telemetry.span(f"execute_tool {name}", attributes) as span:
        try:
            output = await calling
        except suspends as error:
            span.add({"fireswarm.suspended_by": type(error).__name__})
            suspended = error
        else:
            if telemetry.captures_content:
                span.add({"gen_ai.tool.call.result": redact.clean(output.text)})
            if output.failed:
                span.fail("tool_failed")
            return output
    raise suspended


async def record_commit[T](telemetry: Telemetry, sending: Awaitable[T], writes: int) -> T:
    """Await a commit of so many writes to the store, and record it if it belongs to a turn."""
    if turn_at_work.get() is None:
        return await sending
    attributes = {"db.system.name": "firestore", "db.operation.name": "commit", "db.operation.batch.size": writes}
    with telemetry.span("commit", attributes, is_client=True):
        return await sending
