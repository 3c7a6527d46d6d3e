"""Call a skill directly, turn by turn, under the same contract as on the board.

Without a router, a skill that delegates tasks fails.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio

from fireswarm.contracts.base import JsonObject
from fireswarm.contracts.limits import MAX_OBJECTIVE_CHARS, truncate
from fireswarm.contracts.llm.response import AgentResponse, as_response
from fireswarm.contracts.ports import Clock, ConversationStore
from fireswarm.contracts.skills.context import Conversation, ConversationChange, check_context_id
from fireswarm.contracts.skills.conversation import ConversationEvent, MessageType, ResponseMetadata, TaskState, Terms
from fireswarm.contracts.skills.skill import SkillRequest, SkillResult
from fireswarm.errors import ContextEnded, DuplicateMessage, ResumeRefused, SkillFailed
from fireswarm.skills.packs.catalog import Catalog, Skill
from fireswarm.skills.packs.terms import terms_of
from fireswarm.skills.running import conversation_rules
from fireswarm.skills.running.execute import run_skill

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
        response is resumed. A repeated ``message_id`` returns the earlier response and runs nothing. A failure of the
        skill is in the response.

        Raises NotFound, InvalidInput, ResumeRefused, ContextEnded and VersionConflict if no turn was run, and
        DuplicateMessage for a repeated message whose response was too large to store.
        """
        chosen = self.catalog.get(skill)
        terms = terms_of(chosen) or ONE_SHOT
        stored = await self.contexts.load(check_context_id(context_id)) if terms.keeps_state else None
        if stored is not None and message_id is not None and message_id in stored.messages:
            return await self._again(context_id, message_id)
        self._may_begin(stored, chosen, terms, context_id, resume, token)
        turn = (stored.state.turn if stored else 0) + 1
        merged: JsonObject = {**(stored.state.inputs if stored else {}), **inputs}
        json_inputs = {str(name): value for name, value in merged.items()}
        conversation_rules.check_inputs(terms, json_inputs)
        began = time.monotonic()
        if reason := conversation_rules.reason_turn_exceeded(turn, terms, chosen.name):
            result, state = SkillResult.failure(reason), TaskState.ESCALATED
        else:
            result, state, reason = await self._turn(chosen, terms, stored, context_id, turn, json_inputs)
        metadata = ResponseMetadata(
            context_id=context_id,
            skill=chosen.name,
            turn=turn,
            max_turns=terms.interaction_outcomes.max_turns,
            terminal=state.terminal,
            resumable=state.resumable,
            state_detail=result.state.value,
            duration_seconds=round(time.monotonic() - began, 3),
        )
        response = as_response(result, state, metadata, reason=reason)
        if not terms.keeps_state:
            return response
        change = self._change(stored, terms, response, result, json_inputs, inputs)
        return await self._keep(response, replace(change, message_id=message_id))

    def _change(
        self,
        found: Conversation | None,
        terms: Terms,
        response: AgentResponse,
        result: SkillResult,
        merged: JsonObject,
        given: Mapping[str, Any],
    ) -> ConversationChange:
        """Return the change that this turn makes to the stored conversation."""
        kind = MessageType.ANSWER if found else MessageType.REQUEST
        asked = ConversationEvent(type=kind.value, payload={"inputs": dict(given)})
        kept = response.state.resumable or response.state is TaskState.COMPLETED
        return ConversationChange(
            response.metadata.context_id,
            found.state.version if found else 0,
            session_hash=self.session,
            skill=response.metadata.skill,
            task_state=response.state,
            turn=response.metadata.turn,
            detail=result.state.value,
            inputs=merged,
            input_request=response.input_request.model_dump(mode="json") if response.input_request else {},
            facts=result.pocket if kept else (),
            events=conversation_rules.events_of(terms, asked, result),
            response=response.model_dump(mode="json"),
        )

    def invoke_sync(self, skill: str, inputs: Mapping[str, Any], context_id: str, **options: Any) -> AgentResponse:
        """Call ``invoke`` without an event loop."""
        return anyio.run(partial(self.invoke, skill, inputs, context_id, **options))

    def _may_begin(
        self, found: Conversation | None, skill: Skill, terms: Terms, context_id: str, resume: bool, token: str | None
    ) -> None:
        """Raise ResumeRefused or ContextEnded if this call may not start or resume the conversation."""
        if found is not None and found.state.session_hash != self.session:
            raise ResumeRefused(f"conversation {context_id} belongs to another session")
        if found is not None and found.state.skill != skill.name:
            raise ResumeRefused(f"conversation {context_id} belongs to skill {found.state.skill}, not to {skill.name}")
        if resume:
            if not (terms.keeps_state and terms.interaction_outcomes.supports_resume):
                raise ResumeRefused(f"skill {skill.name} stores no state that could be resumed")
            conversation_rules.check_resume(found, context_id, token)
        elif found is not None:
            state = found.state.task_state
            if state.terminal:
                raise ContextEnded(f"conversation {context_id} is {state.value}: start another one")
            raise ResumeRefused(f"conversation {context_id} has started and is {state.value}: call with resume=True")

    async def _turn(
        self, skill: Skill, terms: Terms, found: Conversation | None, context_id: str, turn: int, inputs: JsonObject
    ) -> tuple[SkillResult, TaskState, str]:
        """Run the skill in a temporary folder and return its result, the turn's state, and the reason if it differs."""
        with TemporaryDirectory(prefix="fireswarm-turn-") as folder:
            request = SkillRequest(
                task_id=context_id,
                session_hash=self.session,
                objective=truncate(str(inputs.get("objective") or skill.description), MAX_OBJECTIVE_CHARS),
                role=self.role,
                context=inputs,
                answers=inputs,
                conversation=conversation_rules.view(found, context_id, turn, terms, inputs),
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
                return result, state, reason
            assert scope.cancelled_caught
        reason = f"the turn of skill {skill.name} took longer than {self.timeout_seconds:g} s"
        return SkillResult.failure(reason), TaskState.TIMEOUT, reason

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


def _with_token(response: AgentResponse, kept: Conversation) -> AgentResponse:
    metadata = response.metadata.model_copy(update={"version": kept.state.version})
    token = conversation_rules.resume_token(kept.state) if response.state.resumable else None
    return response.model_copy(update={"metadata": metadata, "resume_token": token})
