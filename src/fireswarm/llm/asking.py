"""Get one answer from a model: budget, limiter, retries, decoding, and one repair. Each step is an event.

The answer of each real call is a journaled step: after a crash it is read from the journal, without a new call or cost.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import anyio

from fireswarm.contracts.limits import MAX_DETAIL_CHARS, truncate
from fireswarm.contracts.llm.chat import ChatRequest, ChatResponse, LlmRequestMeta, StopReason, TokenUsage
from fireswarm.contracts.llm.decision import ModelDecision
from fireswarm.contracts.llm.step_names import answer_steps, count_step, summary_step
from fireswarm.contracts.ports import Recorder
from fireswarm.contracts.swarm.event import EventType
from fireswarm.errors import (
    DecisionInvalid,
    FireswarmError,
    ModelError,
    ModelPaused,
    ModelRejected,
    ModelUnavailable,
    PromptTooLong,
)
from fireswarm.llm.budget import Spend
from fireswarm.llm.calls import clean_response, decision_of, for_another_model, of_another_model
from fireswarm.llm.client import ModelClient, Substitute
from fireswarm.llm.codecs.json_text import Undecodable, repair_request
from fireswarm.llm.codecs.json_tools import answer_schema, describe_fault
from fireswarm.llm.compaction import (
    NOT_GIVEN,
    announce,
    list_calls,
    request_of,
    summary_of,
    summary_part,
    summary_request,
)
from fireswarm.llm.prompt import COUNT_FROM, Component, Part, Transcript
from fireswarm.llm.retry import OVERLOADED, can_be_replaced, is_about_schema
from fireswarm.llm.tokens import longest_answer, prompt_limit

SHARE_OF_LIST = 8
"""Maximum share of the prompt, an eighth, for the list that replaces a missing summary."""

SAID_CHARS = 4_000
"""Maximum length of a person's message in an event; the step has the full message."""

BROKEN_SECONDS = 2.0
"""Time limit for storing the cost of a broken answer."""


@dataclass(slots=True)
class Asking:
    """The calls of one run, and their usage. ``schema`` is the JSON Schema of answers to questions without tools.

    ``could_call`` is False if the last answer was requested without tools; ``said`` is a person's message in the next
    request, for its event. ``replaced`` is True once a substitute goes on with the conversation.
    """

    client: ModelClient
    recorder: Recorder
    conversation: Transcript
    on_words: Callable[[str], None] | None = None
    spent: Spend = field(default_factory=Spend)
    usage: list[TokenUsage] = field(default_factory=list)
    native: bool | None = None
    could_call: bool = True
    said: str = ""
    replaced: bool = False
    schema: dict[str, Any] | None = None
    _received: dict[str, Any] = field(default_factory=dict)
    _keep: Callable[[], tuple[Part, ...]] = tuple
    _may_compact: bool = False

    async def compose(self, decision: int, keep: Callable[[], tuple[Part, ...]] = tuple) -> None:
        """Fit the prompt into its budget and record the allocation.

        Material that does not fit is replaced by a summary; *keep* returns the text that stays verbatim.
        """
        client, talk = self.client, self.conversation
        limit = prompt_limit(client.settings)
        if talk.tokens > limit * COUNT_FROM and talk.counted_by == "estimate":
            await self._count(decision)
        removed: tuple[str, ...] = ()
        self._keep, self._may_compact = keep, talk.can_fold
        compacted_before = self.recorder.has_begun(summary_step(decision, 0))  # also after the provider's refusal
        if (talk.tokens > limit or compacted_before) and talk.can_fold:
            removed = await self._summarise(decision, keep)
            self._may_compact = False
        announce(talk, client.settings, self.recorder, decision, removed)

    async def _summarise(self, decision: int, keep: Callable[[], tuple[Part, ...]]) -> tuple[str, ...]:
        """Replace the older messages by a summary from the model; ask again if the model calls tools instead."""
        settings, talk, summary = self.client.settings, self.conversation, ""
        limit = prompt_limit(settings)
        for attempt, may_call in enumerate((True, False)):
            request = summary_request(talk, limit, longest_answer(settings, limit), may_call=may_call)
            try:
                summary = summary_of(await self._answer(summary_step(decision, attempt), decision, request))
            except PromptTooLong:
                break
            if summary or not talk.tools:
                break
        number, missing = talk.answers, () if summary else (NOT_GIVEN,)
        stand_in = summary or list_calls(talk.messages_to_fold(""), limit // SHARE_OF_LIST)
        gone = talk.fold(summary_part(stand_in), *keep())
        return (f"the messages up to answer {number - 1}", *missing, *gone)

    async def ask(self, decision: int) -> ChatResponse:
        """Request the answer of a decision, with its calls; if it cannot be decoded, request it once more.

        Raises the provider's ModelError; DecisionInvalid for a refusal, or if the second answer cannot be decoded
        either.
        """
        fault = ""
        for attempt, step in enumerate(answer_steps(decision)):
            answer = await self.ask_once(decision, step)
            if answer.stop is StopReason.REFUSAL:
                reason = truncate(answer.text, MAX_DETAIL_CHARS) or "no reason"
                raise DecisionInvalid(f"{self.client.model.name} refused to answer: {reason}")
            answer, fault = self._decode(answer, decision)
            self._record_decoding(decision, attempt, decision_of(answer), fault)
            if not fault:
                return answer
            if self.client.settings.structured_output_mode == "native_only":
                break
            if not attempt:
                schema = answer_schema(self.conversation.tools)
                self.conversation.say(Part(Component.STATE, repair_request(fault, schema), "a repair"))
        raise DecisionInvalid(f"{self.client.model.name} returned no valid decision: {fault}")

    async def ask_once(self, decision: int, step: str) -> ChatResponse:
        """Request one answer without decoding, and add it to the conversation.

        If the provider says that the prompt is too long, the older messages are summarized once. Raises the provider's
        ModelError.
        """
        try:
            answer = await self._answer(step, decision)
        except PromptTooLong:
            if not self._may_compact:
                raise
            self._may_compact = False
            removed = await self._summarise(decision, self._keep)
            announce(self.conversation, self.client.settings, self.recorder, decision, removed)
            answer = await self._answer(step, decision)
        self.said = ""  # also if the answer came from the journal, without a request
        self.conversation.add_answer(answer.text, answer.content, answer.calls)
        self.conversation.set_counts(answer.usage.prompt_tokens, answer.usage.output_tokens)
        return answer

    def _decode(self, answer: ChatResponse, decision: int) -> tuple[ChatResponse, str]:
        """Return the answer with its calls, and the error if they could not be decoded."""
        codec = self.client.codec
        if codec is None:
            return answer, ""
        try:
            return codec.decode(answer, decision, self.conversation.tools), ""
        except Undecodable as error:
            return answer, describe_fault(str(error), answer.stop)

    async def _answer(self, step: str, decision: int, fixed: ChatRequest | None = None) -> ChatResponse:
        """Return the model's answer as a journaled step, and add its cost to the run's spend.

        The request is *fixed*, or the next one of the conversation, whose answer may be streamed.
        """

        async def call() -> dict[str, Any]:
            response = await self._call_any(step, decision, fixed)
            usd = self.client.meter.cost(response.usage)
            kept = response.model_dump(mode="json", exclude_defaults=True) | {"usd": usd, "maker": self._maker}
            kept |= {} if self.conversation.may_call else {"may_call": False}
            return kept | ({"replaced": True} if self.replaced else {})

        stored = await self.recorder.step(step, call, idempotent=True)
        if self._received:  # recorded only now: a journaled answer is never requested again
            self.recorder.event(EventType.LLM_RESPONSE_RECEIVED, self._received)
            self._received = {}
        usd, maker = stored.pop("usd", None), stored.pop("maker", self._maker)
        if stored.pop("replaced", False):  # by an earlier start
            for substitute in self.client.substitutes:
                if substitute.maker == maker:
                    self._go_on_with(substitute)
        self.could_call = stored.pop("may_call", True)
        response = ChatResponse.model_validate(stored)
        if maker != self._maker:
            response = of_another_model(response, decision)
        self.spent.add(Spend.of_call(response.usage.total_tokens, usd))
        self.usage.append(response.usage)
        return response

    async def _call_any(self, step: str, decision: int, fixed: ChatRequest | None) -> ChatResponse:
        """Call the model; if it cannot be reached, go on with the next substitute."""
        while True:
            try:
                return await self._call(step, decision, fixed)
            except ModelError as error:
                if not (can_be_replaced(error) and self._replace(decision)):
                    raise
                if fixed is not None:
                    fixed = replace(fixed, messages=for_another_model(fixed.messages))

    def _replace(self, decision: int) -> bool:
        """Go on with the first substitute that can be opened; return False if there is none."""
        for substitute in self.client.substitutes:
            attempt: dict[str, Any] = {"turn": decision, "model": substitute.maker, "attempt": 1}
            try:
                self._go_on_with(substitute)
            except FireswarmError as error:
                self.recorder.event(EventType.LLM_REQUEST_FAILED, attempt | {"error": str(error)})
            else:
                self.recorder.event(EventType.LLM_RETRY_SCHEDULED, attempt | {"pause_seconds": 0})
                return True
        return False

    def _go_on_with(self, substitute: Substitute) -> None:
        """Give the conversation to a substitute: it gets the texts and calls of the other model, not its thoughts."""
        self.client, self.replaced = replace(substitute.open(), ledger=self.client.ledger), True
        self.conversation.give_to_another_model()

    async def _call(self, step: str, decision: int, fixed: ChatRequest | None) -> ChatResponse:
        """Call the model until it answers or a retry cannot help."""
        client = self.client
        native = client.native_first if self.native is None else self.native
        await client.meter.check(self.conversation.tokens, self.spent, client.ledger)
        attempt = 0
        while True:
            attempt += 1
            request = self._encode(fixed or self._request(native), native)
            await client.limiter.admit(self.conversation.tokens + request.max_tokens)
            try:
                response = await self._once(step, decision, attempt, request)
            except ModelUnavailable as error:
                await self._pause(decision, attempt, error)
            except ModelRejected as error:
                self._record_failure(decision, attempt, error)
                mode = client.settings.structured_output_mode
                is_native = request.native and request.schema is not None
                if not (is_native and mode == "native_with_json_fallback" and is_about_schema(error)):
                    raise
                native = self.native = False
            else:
                await self._count_money(response.usage)
                return response

    async def _count_money(self, usage: TokenUsage) -> Spend:
        """Count the cost of each real call once; answers from the journal are not counted again."""
        client = self.client
        spend = Spend.of_call(usage.total_tokens, client.meter.cost(usage))
        self.recorder.record_usage({**spend.fields(), **usage.model_dump(), **self._names})
        if client.ledger is not None:
            await client.ledger.add(spend)
        return spend

    async def _count_broken(self, broken: Sequence[TokenUsage]) -> None:
        """Count the cost of an answer that was interrupted, even while this work is being cancelled."""
        with anyio.move_on_after(BROKEN_SECONDS, shield=True):
            for usage in broken:
                self.spent.add(await self._count_money(usage))

    async def _once(self, step: str, decision: int, attempt: int, request: ChatRequest) -> ChatResponse:
        """Send one request and return the redacted answer; record the events."""
        client = self.client
        meta: dict[str, Any] = {**self._names, "attempt": attempt}
        purpose = {"for": "summary"} if request.for_summary else {}
        if self.said and not request.for_summary:
            purpose, self.said = {"said": truncate(self.said, SAID_CHARS)}, ""
        self.recorder.event(EventType.LLM_REQUEST_SENT, {"turn": decision, **meta, "native": request.native, **purpose})
        if client.debug_bodies:
            self.recorder.body(
                f"{step}.{attempt}.request.json", json.dumps(request.as_json(), indent=2, ensure_ascii=False)
            )
        began = time.perf_counter()
        broken: list[TokenUsage] = []
        try:
            response = await client.complete(request, self._listener(request), broken.append)
        except BaseException:
            await self._count_broken(broken)
            raise
        response = clean_response(response, client.redact)
        if client.debug_bodies:
            self.recorder.body(f"{step}.{attempt}.response.json", response.model_dump_json(indent=2))
        done = LlmRequestMeta(
            **meta,
            latency_ms=round((time.perf_counter() - began) * 1_000, 1),
            input_tokens=response.usage.prompt_tokens,
            output_tokens=response.usage.output_tokens,
        )
        self._received = {
            "turn": decision,
            **done.model_dump(mode="json"),
            "cached_tokens": response.usage.cached_tokens,
            "thinking_tokens": response.usage.thinking_tokens,
            "usd": client.meter.cost(response.usage),
            "stop": response.stop.value,
            "chars": len(response.text),
        }
        return response

    def _listener(self, request: ChatRequest) -> Callable[[str], None] | None:
        """Return the receiver of the pieces of the answer.

        An answer that nobody watches is streamed too, since a long silence would time out.
        """
        if not self.client.settings.stream:
            return None
        return self.on_words if self.on_words is not None and not request.for_summary else lambda _: None

    async def _pause(self, decision: int, attempt: int, error: ModelUnavailable) -> None:
        """Wait before the next attempt. Raises the error if the call must not be repeated."""
        client = self.client
        pause = client.retry.pause(attempt, error, client.chance)
        self._record_failure(decision, attempt, error)
        if error.status in OVERLOADED:
            await client.limiter.back_off(pause if pause is not None else error.retry_after or 0.0)
        asked = error.retry_after or 0.0
        if client.retry.is_too_long(asked):
            until = client.clock.now() + timedelta(seconds=asked)
            raise ModelPaused(str(error), until, retry_after=asked, status=error.status) from error
        if pause is None:
            raise error
        self.recorder.event(
            EventType.LLM_RETRY_SCHEDULED, {"turn": decision, "attempt": attempt + 1, "pause_seconds": round(pause, 3)}
        )
        await client.clock.sleep(pause)

    def _record_failure(self, decision: int, attempt: int, error: ModelError) -> None:
        """Record a failed request."""
        self.recorder.event(
            EventType.LLM_REQUEST_FAILED,
            {
                "turn": decision,
                **self._names,
                "attempt": attempt,
                "status": getattr(error, "status", 0),
                "retryable": error.retryable,
                "error": self.client.redact.clean(str(error)),
            },
        )

    @property
    def _names(self) -> dict[str, str]:
        return {"provider": self.client.model.provider, "model": self.client.model.name}

    @property
    def _maker(self) -> str:
        """The model and its platform: thoughts signed by another one are refused."""
        return f"{self.client.model.provider}/{self.client.model.name}"

    def next_request(self) -> ChatRequest:
        """Return the next request in the form that the model accepts."""
        native = self.client.native_first if self.native is None else self.native
        return self._encode(self._request(native), native)

    def _request(self, native: bool) -> ChatRequest:
        return request_of(self.conversation, self.client.settings, native=native, schema=self.schema)

    def _encode(self, request: ChatRequest, native: bool) -> ChatRequest:
        """Return the request for the model: with its tools, or with their description and a JSON schema instead."""
        codec = self.client.codec
        return codec.encode(request, native=native) if codec is not None and request.tools else request

    def _record_decoding(self, decision: int, attempt: int, decoded: ModelDecision, fault: str) -> None:
        """Record the decoded decision, or the error."""
        payload: dict[str, Any] = {"turn": decision, "attempt": attempt, "ok": not fault}
        if fault:
            payload["fault"] = fault
        else:
            payload |= {
                "selected_skill": decoded.selected_skill,
                "reasoning_summary": decoded.reasoning_summary,
                "required_disclosure_paths": list(decoded.required_disclosure_paths),
                "actions": [action.type.value for action in decoded.planned_actions],
            }
        self.recorder.event(EventType.LLM_DECISION_DECODED, payload)

    async def _count(self, decision: int) -> None:
        """Let the provider count a prompt that is near its limit; if that fails, use the estimate.

        The count is a journaled step, so that a resumed run is summarized at the same place.
        """

        async def count() -> dict[str, Any]:
            with contextlib.suppress(ModelError):
                return {"tokens": await self.client.count_tokens(self.next_request())}
            return {"tokens": None}

        counted = (await self.recorder.step(count_step(decision), count, idempotent=True))["tokens"]
        if counted is not None:
            self.conversation.set_counts(counted, 0)
            self.conversation.counted_by = "provider"
