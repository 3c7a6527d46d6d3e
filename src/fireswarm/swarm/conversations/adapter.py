"""Call a skill directly, turn by turn, under the same contract as on the board.

Without a router, a skill that delegates tasks fails.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio

from fireswarm.contracts.base import JsonObject
from fireswarm.contracts.limits import MAX_OBJECTIVE_CHARS, truncate
from fireswarm.contracts.llm.response import AgentResponse, as_response
from fireswarm.contracts.ports import Clock, ConversationStore
from fireswarm.contracts.skills.context import (
    Conversation,
    ConversationChange,
    ConversationState,
    TurnHold,
    check_context_id,
)
from fireswarm.contracts.skills.conversation import ConversationEvent, MessageType, ResponseMetadata, TaskState, Terms
from fireswarm.contracts.skills.skill import SkillRequest, SkillResult
from fireswarm.errors import (
    ContextEnded,
    DuplicateMessage,
    FireswarmError,
    InvalidInput,
    ResumeRefused,
    SkillFailed,
    VersionConflict,
)
from fireswarm.skills.packs.catalog import Catalog, Skill
from fireswarm.skills.packs.terms import terms_of
from fireswarm.skills.running import conversation_rules
from fireswarm.skills.running.execute import run_skill

GRACE_SECONDS = 30.0
"""Time after a turn's limit in which its call still has the turn."""

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.05, 1.0
"""Pauses of a call that waits for the response of another one."""

ONE_SHOT = Terms.model_validate({"state_persistence": "none"})
"""Terms of a skill without a conversation: one turn, nothing stored."""

Run = Callable[[Skill, SkillRequest], Awaitable[SkillResult]]


@dataclass(frozen=True, slots=True)
class AgentAdapter:
    """Calls skills of a catalog and stores their conversations.

    Set ``router`` if the caller executes the tasks that a skill delegates. ``timeout_seconds`` limits one turn.
    """

    catalog: Catalog
    contexts: ConversationStore
    clock: Clock
    session: str = "default"
    role: str = "executor"
    router: bool = False
    timeout_seconds: float = 600.0
    run: Run = run_skill

    async def invoke(
        self,
        skill: str,
        inputs: Mapping[str, Any],
        context_id: str,
        *,
        resume: bool = False,
        token: str | None = None,
        message_id: str | None = None,
    ) -> AgentResponse:
        """Run one turn of *skill* with *inputs* and return its response.

        To continue, call again with ``resume=True``. With the last response's ``token``, only the state of that
        response is resumed. A repeated ``message_id`` returns the earlier response and runs nothing; while the first
        call with it runs, it waits for that response. A failure of the skill is in the response.

        Raises NotFound, InvalidInput, ResumeRefused, ContextEnded and VersionConflict (another call has the turn) if no
        turn was run, and DuplicateMessage for a repeated message whose response was too large to store.
        """
        chosen = self.catalog.get(skill)
        terms = terms_of(chosen) or ONE_SHOT
        if not terms.keeps_state:
            check_context_id(context_id)
            self._may_begin(None, chosen, terms, context_id, resume, token)
            call = _Call(chosen, terms, context_id, inputs, message_id)
            return call.response(*(await self._turn(call)))
        while True:
            stored = await self.contexts.load(check_context_id(context_id))
            if stored is not None and message_id is not None and message_id in stored.messages:
                return await self._again(context_id, message_id)
            if stored is not None and self._is_held(stored.state):
                await self._wait_for_turn(stored.state, message_id)
                continue
            self._may_begin(stored, chosen, terms, context_id, resume, token)
            call = _Call(chosen, terms, context_id, inputs, message_id, stored)
            conversation_rules.check_inputs(terms, call.merged)
            if (held := await self._hold(call)) is not None:
                return await self._end_turn(replace(call, found=held))

    def _is_held(self, state: ConversationState) -> bool:
        return state.held_until is not None and state.held_until > self.clock.now()

    async def _wait_for_turn(self, state: ConversationState, message_id: str | None) -> None:
        """Wait until the call that answers the message has ended. Raises VersionConflict if it answers another one."""
        if message_id is None or state.held_message != message_id:
            raise VersionConflict(
                f"another call has the turn of conversation {state.context_id}: call again after it, or with its "
                "message_id to wait for its response"
            )
        pause, holder = FIRST_PAUSE_SECONDS, state.holder
        while state.holder == holder and self._is_held(state):
            await self.clock.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
            if (stored := await self.contexts.load(state.context_id)) is None:
                return
            state = stored.state

    async def _hold(self, call: _Call) -> Conversation | None:
        """Take the turn before the skill runs; returns None if another call was faster."""
        state = call.found.state if call.found else None
        until = self.clock.now() + timedelta(seconds=self.timeout_seconds + GRACE_SECONDS)
        change = ConversationChange(
            call.context_id,
            state.version if state else 0,
            session_hash=self.session,
            skill=call.skill.name,
            hold=TurnHold(f"call-{secrets.token_hex(8)}", call.message_id or "", until),
            expected_holder=state.holder if state else "",
        )
        try:
            return await self.contexts.apply(change)
        except VersionConflict:
            return None

    async def _end_turn(self, call: _Call) -> AgentResponse:
        """Run the skill, store what it did, and return the response. Without a response, nobody has the turn."""
        answered = False
        try:
            result, state, reason, seconds = await self._turn(call)
            response = call.response(result, state, reason, seconds)
            try:
                response = await self._keep(response, self._change(call, response, result))
            except InvalidInput as error:  # what the skill left does not fit into the store
                failed = SkillResult.failure(str(error))
                response = call.response(failed, TaskState.FAILED, str(error), seconds)
                response = await self._keep(response, self._change(replace(call, inputs={}), response, failed))
            answered = True
            return response
        finally:
            if not answered:
                with anyio.move_on_after(GRACE_SECONDS, shield=True), contextlib.suppress(FireswarmError):
                    await self.contexts.apply(replace(call.change(), hold=TurnHold()))

    def _change(self, call: _Call, response: AgentResponse, result: SkillResult) -> ConversationChange:
        """Return the change that this turn makes to the stored conversation."""
        kind = MessageType.ANSWER if call.began_before else MessageType.REQUEST
        asked = ConversationEvent(type=kind.value, payload={"inputs": dict(call.inputs)})
        kept = response.state.resumable or response.state is TaskState.COMPLETED
        return replace(
            call.change(),
            session_hash=self.session,
            skill=response.metadata.skill,
            task_state=response.state,
            turn=response.metadata.turn,
            detail=result.state.value,
            inputs=call.merged,
            input_request=response.input_request.model_dump(mode="json") if response.input_request else {},
            facts=result.pocket if kept else (),
            events=conversation_rules.events_of(call.terms, asked, result),
            response=response.model_dump(mode="json"),
            message_id=call.message_id,
            hold=TurnHold(),
        )

    def invoke_sync(self, skill: str, inputs: Mapping[str, Any], context_id: str, **options: Any) -> AgentResponse:
        """Call ``invoke`` without an event loop."""
        return anyio.run(partial(self.invoke, skill, inputs, context_id, **options))

    def _may_begin(
        self, found: Conversation | None, skill: Skill, terms: Terms, context_id: str, resume: bool, token: str | None
    ) -> None:
        """Raise ResumeRefused or ContextEnded if this call may not start or resume the conversation."""
        begun = found is not None and found.state.turn > 0  # else its first turn never ended
        if found is not None and found.state.session_hash != self.session:
            raise ResumeRefused(f"conversation {context_id} belongs to another session")
        if found is not None and found.state.skill != skill.name:
            raise ResumeRefused(f"conversation {context_id} belongs to skill {found.state.skill}, not to {skill.name}")
        if resume:
            if not (terms.keeps_state and terms.interaction_outcomes.supports_resume):
                raise ResumeRefused(f"skill {skill.name} stores no state that could be resumed")
            conversation_rules.check_resume(found if begun else None, context_id, token)
        elif found is not None and begun:
            state = found.state.task_state
            if state.terminal:
                raise ContextEnded(f"conversation {context_id} is {state.value}: start another one")
            raise ResumeRefused(f"conversation {context_id} has started and is {state.value}: call with resume=True")

    async def _turn(self, call: _Call) -> tuple[SkillResult, TaskState, str, float]:
        """Run the skill in a temporary folder, unless its turns are used up.

        Returns its result, the turn's state, the reason if that differs from the reported one, and the seconds.
        """
        skill, terms, context_id, inputs = call.skill, call.terms, call.context_id, call.merged
        if reason := conversation_rules.reason_turn_exceeded(call.turn, terms, skill.name):
            return SkillResult.failure(reason), TaskState.ESCALATED, "", 0.0
        began = time.monotonic()
        with TemporaryDirectory(prefix="fireswarm-turn-") as folder:
            request = SkillRequest(
                task_id=context_id,
                session_hash=self.session,
                objective=truncate(str(inputs.get("objective") or skill.description), MAX_OBJECTIVE_CHARS),
                role=self.role,
                context=inputs,
                answers=inputs,
                conversation=conversation_rules.view(call.found, context_id, call.turn, terms, inputs),
                workdir=Path(folder),
                now=self.clock.now(),
            )
            reason = ""
            with anyio.move_on_after(self.timeout_seconds) as scope:
                try:
                    result = await self.run(skill, request)
                except SkillFailed as error:
                    result = SkillResult.failure(str(error))
                state, reason = conversation_rules.checked_state(result, terms, skill.name, router=self.router)
                return result, state, reason, time.monotonic() - began
            assert scope.cancelled_caught
        reason = f"the turn of skill {skill.name} took longer than {self.timeout_seconds:g} s"
        return SkillResult.failure(reason), TaskState.TIMEOUT, reason, self.timeout_seconds

    async def _keep(self, response: AgentResponse, change: ConversationChange) -> AgentResponse:
        try:
            kept = await self.contexts.apply(change)
        except DuplicateMessage as duplicate:
            if duplicate.response is None:
                raise
            return await self._again(change.context_id, str(change.message_id))
        return _with_token(response, kept)

    async def _again(self, context_id: str, message_id: str) -> AgentResponse:
        """Return the stored response to a message, with its resume token only if it is the latest response."""
        known = await self.contexts.response(context_id, message_id)
        stored = await self.contexts.load(context_id)
        if known is None or stored is None:
            raise DuplicateMessage(f"message {message_id} was handled before; its answer was too large to be stored")
        response = AgentResponse.model_validate(known)
        return _with_token(response, stored) if stored.messages[-1] == message_id else response


@dataclass(frozen=True, slots=True)
class _Call:
    """One call of a skill; ``found`` is the conversation before its turn."""

    skill: Skill
    terms: Terms
    context_id: str
    inputs: Mapping[str, Any]
    message_id: str | None
    found: Conversation | None = None

    @property
    def began_before(self) -> bool:
        """True if an earlier turn has ended."""
        return self.found is not None and self.found.state.turn > 0

    @property
    def turn(self) -> int:
        """Number of this turn, from 1."""
        return (self.found.state.turn if self.found else 0) + 1

    @property
    def merged(self) -> JsonObject:
        """The inputs of all turns so far."""
        return {str(name): value for name, value in {**self._earlier, **self.inputs}.items()}

    @property
    def _earlier(self) -> JsonObject:
        return self.found.state.inputs if self.found else {}

    def response(self, result: SkillResult, state: TaskState, reason: str, seconds: float) -> AgentResponse:
        """Return the response to this call."""
        metadata = ResponseMetadata(
            context_id=self.context_id,
            skill=self.skill.name,
            turn=self.turn,
            max_turns=self.terms.interaction_outcomes.max_turns,
            terminal=state.terminal,
            resumable=state.resumable,
            state_detail=result.state.value,
            duration_seconds=round(seconds, 3),
        )
        response = as_response(result, state, metadata, reason=reason)
        if (asked := response.input_request) is None:
            return response
        schema = self.terms.input_request_jsonschema
        return response.model_copy(update={"input_request": asked.model_copy(update={"json_schema": schema})})

    def change(self) -> ConversationChange:
        """Return a change that only this call may make, since it has the turn."""
        state = self.found.state if self.found else None
        return ConversationChange(
            self.context_id, state.version if state else 0, expected_holder=state.holder if state else ""
        )


def _with_token(response: AgentResponse, kept: Conversation) -> AgentResponse:
    metadata = response.metadata.model_copy(update={"version": kept.state.version})
    token = conversation_rules.resume_token(kept.state) if response.state.resumable else None
    return response.model_copy(update={"metadata": metadata, "resume_token": token})
