"""One turn of a skill that keeps state between turns.

In the swarm's own store, the turn's change and the task's transition are one commit. With any other store the result
is journaled first and the change is applied once per turn id, so a crash in between repeats neither.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fireswarm.contracts.base import JsonObject
from fireswarm.contracts.limits import MAX_DETAIL_CHARS, truncate
from fireswarm.contracts.ports import ConversationStore, Create, Write
from fireswarm.contracts.skills.artifact import Artifact
from fireswarm.contracts.skills.context import (
    Conversation,
    ConversationChange,
    ConversationState,
    TurnHold,
    check_context_id,
)
from fireswarm.contracts.skills.conversation import ConversationEvent, MessageType, TaskState, Terms
from fireswarm.contracts.skills.skill import PlannedTask, SkillRequest, SkillResult
from fireswarm.contracts.swarm.outcome import Failed, Handoff, Outcome, Snooze
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskResult, TaskStatus
from fireswarm.errors import DuplicateMessage, GraphInvalid, InvalidInput, NotFound, PolicyRefused, VersionConflict
from fireswarm.skills.packs.catalog import Skill
from fireswarm.skills.running import conversation_rules
from fireswarm.storage.conversations.in_store import DocumentConversations
from fireswarm.storage.documents.paths import task_path
from fireswarm.swarm.board import HeldLease
from fireswarm.swarm.board.submit import document
from fireswarm.swarm.parts import SwarmParts

CONTEXT_ID = "context_id"
"""Key in a task's context that names a conversation shared by several tasks of the session."""

BUSY_SECONDS = 2.0
"""Pause in seconds before a task retries when another run has locked its conversation."""

SUMMARY_ROLE, SUMMARY_SKILL = "memory", "session-compactor"
LAST_LINE = "after"
WORTH_CHARS = 1_000
"""Minimum length of a summary that is summarized again."""
MAX_BUCKET_CHARS = 100
MAX_PREFIX_CHARS = 180
"""Maximum length of the readable part of a named conversation's id; a digest replaces the rest."""


class TurnRefused(Exception):
    """Ends the turn immediately with ``outcome``. The writes gathered by the turn are discarded."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(str(outcome))
        self.outcome = outcome


class NoConversation:
    """A conversation of a skill that stores none."""

    settles_with_task = True
    answer_schema: JsonObject = {}

    async def resume(self, request: SkillRequest) -> SkillRequest:
        """Return the request unchanged."""
        return request

    async def keep(self, result: SkillResult) -> Sequence[Write]:
        """Return no writes."""
        return ()


@dataclass(slots=True)
class TaskConversation:
    """One turn of a task whose skill stops and resumes. ``stored`` is the state from earlier turns."""

    swarm: SwarmParts
    held: HeldLease
    skill: Skill
    terms: Terms
    context_id: str
    stored: Conversation | None = None
    summary: str | None = None

    @classmethod
    def of(cls, held: HeldLease, parts: SwarmParts, skill: Skill, terms: Terms) -> TaskConversation:
        """Return the conversation of a leased task. Raises InvalidInput if its ``context_id`` is malformed."""
        return cls(parts, held, skill, terms, _context_id(held.task))

    @property
    def turn(self) -> int:
        """Number of this task's turn, from 1. A turn that is repeated after a crash has the same number."""
        return self.held.task.turn + 1

    @property
    def conversations(self) -> ConversationStore:
        """Store of the swarm's conversations."""
        return self.swarm.conversations or DocumentConversations(self.swarm.store, self.swarm.clock)

    @property
    def settles_with_task(self) -> bool:
        """True if the settling commit also stores the conversation."""
        return isinstance(self.conversations, DocumentConversations)

    @property
    def answer_schema(self) -> JsonObject:
        """JSON Schema of the answers to the skill's questions."""
        return self.terms.input_request_jsonschema

    async def resume(self, request: SkillRequest) -> SkillRequest:
        """Load the state from earlier turns and return the request with it.

        Raises TurnRefused after the skill's ``max_turns`` or while another task has a turn in a shared conversation,
        and InvalidInput if the inputs do not fit the skill's schema.
        """
        if reason := conversation_rules.reason_turn_exceeded(self.turn, self.terms, self.skill.name):
            raise TurnRefused(Failed(reason, StatusReason.ESCALATED))
        if self.terms.keeps_state:
            await self._load()
        earlier = self.stored.state.inputs if self.stored else {}
        context = {name: value for name, value in request.context.items() if name != CONTEXT_ID}
        inputs = {**earlier, **context, **request.answers}
        conversation_rules.check_inputs(self.terms, inputs)
        view = conversation_rules.view(self.stored, self.context_id, self.turn, self.terms, inputs)
        if self.summary is not None:
            view = view.model_copy(update={"summary": self.summary})
        return request.model_copy(update={"conversation": view})

    async def keep(self, result: SkillResult) -> Sequence[Write]:
        """Return the writes that store the turn, or none if another store has stored it already.

        Raises TurnRefused for a result that breaks the skill's contract.
        """
        state, reason = conversation_rules.checked_state(result, self.terms, self.skill.name, router=True)
        if state is TaskState.BLOCKED and reason:
            raise TurnRefused(Failed(reason, StatusReason.GATE_FAILED))
        if not self.terms.keeps_state:
            return ()
        change = self._change(result)
        conversations = self.conversations
        if isinstance(conversations, DocumentConversations):
            return self._document_writes(conversations, change)
        try:
            await conversations.apply(replace(change, message_id=f"{self.held.task.task_id}.{self.turn}"))
        except DuplicateMessage:
            return ()  # stored before a crash; the journal replayed the same result
        return ()

    def _document_writes(self, conversations: DocumentConversations, change: ConversationChange) -> Sequence[Write]:
        """Return *changes* as writes, with a task to summarize the dropped events if there are enough."""
        advanced, writes = conversations.writes(self.stored, change)
        state = advanced.context.state
        if not advanced.dropped_events or state.summary_task or len(state.summary) < WORTH_CHARS:
            return writes
        task_id, births = self._summary_task(state.summary, state.version)
        return [*conversations.writes(self.stored, replace(change, summary_task=task_id))[1], *births]

    def _change(self, result: SkillResult) -> ConversationChange:
        """Return the change that this turn makes to the stored conversation."""
        task, state = self.held.task, conversation_rules.state_of_result(result)
        shared = self.context_id != task.task_id
        if shared and state.terminal:
            state = TaskState.PAUSED  # the task ended, but the conversation continues with other tasks
        before = self.stored.state if self.stored else None
        return ConversationChange(
            self.context_id,
            before.version if before else 0,
            session_hash=task.session_hash,
            skill=self.skill.name,
            task_state=state,
            turn=(before.turn if before else 0) + 1,
            detail=result.state.value,
            summary=self.summary,
            summary_task="" if self.summary is not None else None,
            inputs=self._inputs(result),
            input_request={"missing": [question.name for question in result.questions]} if result.questions else {},
            hold=TurnHold(),
            expected_holder=self.held.run_id if shared else None,
            facts=result.pocket,
            events=conversation_rules.events_of(self.terms, self._began(), result),
            agent_id=self.held.owner,
            retention_days=self.swarm.settings.state.retention_days,
        )

    def _inputs(self, result: SkillResult) -> dict[str, Any]:
        """Return the inputs and answers so far, without those that the result asks for again."""
        before = self.stored.state.inputs if self.stored else {}
        asked = {question.name for question in result.questions}
        return {name: value for name, value in {**before, **self.held.task.answers}.items() if name not in asked}

    def _began(self) -> ConversationEvent:
        task = self.held.task
        before = self.stored.state if self.stored else None
        new = {name: value for name, value in task.answers.items() if not before or before.inputs.get(name) != value}
        if new:
            return ConversationEvent(type=MessageType.ANSWER.value, payload=new)
        if before is not None and before.task_state is TaskState.DELEGATING:
            return ConversationEvent(type=MessageType.RESULT.value, payload={"tasks": len(task.children)})
        objective = truncate(task.objective, MAX_DETAIL_CHARS)
        return ConversationEvent(type=MessageType.REQUEST.value, payload={"objective": objective})

    async def _load(self) -> None:
        self.stored = await self.conversations.load(self.context_id)
        if self.stored is not None and self.stored.state.summary_task:
            self.summary = await self._summary_of(self.stored.state.summary_task)
        if self.context_id != self.held.task.task_id:
            await self._lock(self.stored)

    async def _lock(self, found: Conversation | None) -> None:
        """Lock a shared conversation for this run. Raises TurnRefused if another run or call holds it."""
        holder = found.state.holder if found else ""
        if found and holder and holder != self.held.run_id and await self._is_held(found.state):
            raise TurnRefused(_busy(holder))
        change = ConversationChange(
            self.context_id,
            found.state.version if found else 0,
            session_hash=self.held.task.session_hash,
            skill=self.skill.name,
            hold=TurnHold(self.held.run_id),
            expected_holder=holder,
            retention_days=self.swarm.settings.state.retention_days,
        )
        try:
            self.stored = await self.conversations.apply(change)
        except VersionConflict:
            raise TurnRefused(_busy("another task")) from None

    async def _is_held(self, state: ConversationState) -> bool:
        """Return True if a run works on a turn, or a direct call may still do so."""
        if state.held_until is not None:
            return state.held_until > self.swarm.clock.now()
        return await self._works(state.holder)

    async def _works(self, run_id: str) -> bool:
        task_id, _, epoch = run_id.rpartition(".")
        try:
            task = await self.swarm.board.get(task_id)
        except (NotFound, InvalidInput):
            return False
        return task.status is TaskStatus.IN_PROGRESS and task.lease is not None and str(task.lease.epoch) == epoch

    async def _summary_of(self, task_id: str) -> str | None:
        """Return the memory role's summary of the dropped events, or None until it is done."""
        try:
            task = await self.swarm.board.get(task_id)
        except (NotFound, InvalidInput):
            return None
        made: Sequence[Artifact] = task.result.artifacts if task.status is TaskStatus.DONE and task.result else ()
        texts: list[Any] = [item.value for item in made if item.type == "session_summary"]
        if not texts or not isinstance(texts[0], str) or self.stored is None:
            return None
        # Events dropped after the request for the summary follow the last line of that request.
        since = self.stored.state.summary.partition(str(task.context.get(LAST_LINE)))[2]
        return f"{' '.join(texts[0].split())}{since}"

    def _summary_task(self, text: str, version: int) -> tuple[str, list[Write]]:
        """Return the id and the writes of a task that summarizes the dropped events.

        Returns "" and no writes if the swarm lacks the role or the skill, or if the policy or the plan's limits refuse
        the task.
        """
        if SUMMARY_ROLE not in self.swarm.roles or SUMMARY_SKILL not in self.swarm.catalog.skills:
            return "", []
        planned = PlannedTask(
            key="conversation-summary",
            assigned_to=SUMMARY_ROLE,
            skill=SUMMARY_SKILL,
            objective=f"summarize the events dropped from the log of conversation {self.context_id} up to version "
            f"{version}",
            context={
                "bucket": f"conversation:{self.context_id}"[:MAX_BUCKET_CHARS],
                "max_chars": 4_000,
                LAST_LINE: text.rpartition("\n")[2],
            },
            handoff_reason="the log of a conversation is full",
        )
        log = Artifact(type="report", name="conversation log", summary="dropped events", value=text)
        try:
            births = self.swarm.board.births(self.held, Handoff((planned,), resume=False))
            mail = self.swarm.mailbox.handoffs(self.held.task, births, TaskResult(artifacts=(log,)), "")
        except (PolicyRefused, GraphInvalid):
            return "", []
        return births[0].task_id, [*(Create(task_path(item.task_id), document(item)) for item in births), *mail]


def _busy(holder: str) -> Snooze:
    return Snooze(BUSY_SECONDS, f"conversation is locked by {holder}; retrying in {BUSY_SECONDS:g} s", turn_over=False)


def _context_id(task: Task) -> str:
    """Return the task's id, or the shared id in its context, extended by a hash of the session.

    Raises InvalidInput for a malformed id.
    """
    named = task.context.get(CONTEXT_ID)
    if named is None or named == task.task_id:
        return task.task_id
    if not isinstance(named, str):
        raise InvalidInput(f"context.{CONTEXT_ID} must be a string")
    prefix = check_context_id(named)[:MAX_PREFIX_CHARS]
    rest = named[MAX_PREFIX_CHARS:]  # part of the digest, so that two long names never share a conversation
    digest = hashlib.sha256(f"{task.session_hash}{rest}".encode()).hexdigest()[:12]
    return check_context_id(f"{prefix}.{digest}")
