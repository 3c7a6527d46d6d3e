"""A task whose skill stops and resumes: its conversation is opened before a turn and kept with its outcome.

In the swarm's own store the turn's change and the task's transition are one commit. In any other store the result is
journaled first and the change is applied once by the turn's id, so that a crash in between repeats neither.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fireswarm.contracts.ports import ConversationStore, Create, Write
from fireswarm.contracts.skills.artifact import Artifact
from fireswarm.contracts.skills.context import Conversation, ConversationChange, check_context_id
from fireswarm.contracts.skills.conversation import ConversationEvent, MessageType, TaskState, Terms
from fireswarm.contracts.skills.skill import PlannedTask, SkillRequest, SkillResult
from fireswarm.contracts.swarm.outcome import Failed, Handoff, Outcome, Snooze
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskResult, TaskStatus
from fireswarm.errors import DuplicateMessage, GraphInvalid, InvalidInput, NotFound, PolicyRefused, VersionConflict
from fireswarm.skills.packs.catalog import Skill
from fireswarm.skills.packs.terms import terms_of
from fireswarm.storage.conversations.in_store import DocumentConversations
from fireswarm.storage.documents.paths import task_path
from fireswarm.swarm.board import HeldLease
from fireswarm.swarm.board.submit import document
from fireswarm.swarm.conversations import rules
from fireswarm.swarm.swarm import Swarm

CONTEXT_ID = "context_id"
"""Key in a task's context that names a conversation for several tasks of the session."""

BUSY_SECONDS = 2.0
"""A task that finds its conversation in another's hands looks again after this."""

SUMMARY_ROLE, SUMMARY_SKILL = "memory", "session-compactor"
LAST_LINE = "after"
WORTH_CHARS = 1_000
"""Lines shorter than this together are a summary already."""


def joins(swarm: Swarm) -> bool:
    """Whether a conversation is kept by the commit that settles its task."""
    return swarm.contexts is None or isinstance(swarm.contexts, DocumentConversations)


@dataclass(slots=True)
class Talk:
    """One turn of a conversation. ``stop`` is the outcome where there cannot be one."""

    swarm: Swarm
    held: HeldLease
    skill: Skill
    terms: Terms
    context_id: str
    found: Conversation | None = None
    summary: str | None = None
    stop: Outcome | None = None

    @classmethod
    async def open(cls, swarm: Swarm, held: HeldLease, skill: Skill) -> Talk | None:
        """Load what is left of earlier turns; None for a skill that has no conversation."""
        terms = terms_of(skill)
        if terms is None:
            return None
        talk = cls(swarm, held, skill, terms, _context_id(held.task))
        if reason := rules.reason_turn_exceeded(talk.turn, terms, skill.name):
            talk.stop = Failed(reason, StatusReason.ESCALATED)
        elif terms.keeps_state:
            await talk._load()
        return talk

    @property
    def turn(self) -> int:
        """The number of this task's turn, from 1: the same again after a crash."""
        return self.held.task.turn + 1

    @property
    def contexts(self) -> ConversationStore:
        """Where conversations are kept."""
        return self.swarm.contexts or DocumentConversations(self.swarm.store, self.swarm.clock)

    def with_conversation(self, request: SkillRequest) -> SkillRequest:
        """The request with the conversation in it; InvalidInput when its inputs do not fit the skill's schema."""
        earlier = self.found.state.inputs if self.found else {}
        given = {name: value for name, value in request.context.items() if name != CONTEXT_ID}
        inputs = {**earlier, **given, **request.answers}
        rules.check_inputs(self.terms, inputs)
        seen = rules.view(self.found, self.context_id, self.turn, self.terms, inputs)
        if self.summary is not None:
            seen = seen.model_copy(update={"summary": self.summary})
        return request.model_copy(update={"conversation": seen})

    def contract_breach(self, result: SkillResult) -> Outcome | None:
        """The outcome of a turn that broke the skill's contract; None for one that kept it."""
        state, reason = rules.checked_state(result, self.terms, self.skill.name, router=True)
        return Failed(reason, StatusReason.GATE_FAILED) if state is TaskState.BLOCKED and reason else None

    async def keep(self, result: SkillResult) -> Sequence[Write]:
        """Keep what the turn left: the writes for the settling commit, or nothing where it is kept already."""
        if not self.terms.keeps_state:
            return ()
        change = self._change(result)
        contexts = self.contexts
        if isinstance(contexts, DocumentConversations):
            advanced, writes = contexts.writes(self.found, change)
            state = advanced.context.state
            if not advanced.dropped_events or state.summary_task or len(state.summary) < WORTH_CHARS:
                return writes
            task_id, births = self._summary_task(state.summary, state.version)
            return [*contexts.writes(self.found, replace(change, summary_task=task_id))[1], *births]
        try:
            await contexts.apply(replace(change, message_id=f"{self.held.task.task_id}.{self.turn}"))
        except DuplicateMessage:
            return ()  # kept before a crash; the journal gave the same result again
        return ()

    def _change(self, result: SkillResult) -> ConversationChange:
        task, state = self.held.task, rules.state_of_result(result)
        shared = self.context_id != task.task_id
        if shared and state.terminal:
            state = TaskState.PAUSED  # the task ended; the conversation is not one task's alone
        before = self.found.state if self.found else None
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
            inputs={**(before.inputs if before else {}), **task.answers},
            input_request={"missing": [question.name for question in result.questions]} if result.questions else {},
            holder="",
            facts=result.pocket,
            events=rules.events_of(self.terms, self._began(), result),
            agent_id=self.held.owner,
            retention_days=self.swarm.settings.state.retention_days,
        )

    def _began(self) -> ConversationEvent:
        task = self.held.task
        before = self.found.state if self.found else None
        new = {name: value for name, value in task.answers.items() if not before or before.inputs.get(name) != value}
        if new:
            return ConversationEvent(type=MessageType.ANSWER.value, payload=new)
        if before is not None and before.task_state is TaskState.DELEGATING:
            return ConversationEvent(type=MessageType.RESULT.value, payload={"tasks": len(task.children)})
        return ConversationEvent(type=MessageType.REQUEST.value, payload={"objective": task.objective[:500]})

    async def _load(self) -> None:
        self.found = await self.contexts.load(self.context_id)
        if self.found is None:
            return
        if self.found.state.summary_task:
            self.summary = await self._summary_of(self.found.state.summary_task)
        if self.context_id != self.held.task.task_id:
            await self._take_in_hand(self.found)

    async def _take_in_hand(self, found: Conversation) -> None:
        """Of the tasks that share a conversation, one at a time has a turn."""
        holder = found.state.holder
        if holder and holder != self.held.run_id and await self._works(holder):
            self.stop = _busy(holder)
            return
        try:
            hold = ConversationChange(self.context_id, found.state.version, holder=self.held.run_id)
            self.found = await self.contexts.apply(hold)
        except VersionConflict:
            self.stop = _busy("another task")

    async def _works(self, run_id: str) -> bool:
        task_id, _, epoch = run_id.rpartition(".")
        try:
            task = await self.swarm.board.get(task_id)
        except (NotFound, InvalidInput):
            return False
        return task.status is TaskStatus.IN_PROGRESS and task.lease is not None and str(task.lease.epoch) == epoch

    async def _summary_of(self, task_id: str) -> str | None:
        """What Memory made of the events that were dropped; None while it is not done."""
        try:
            task = await self.swarm.board.get(task_id)
        except (NotFound, InvalidInput):
            return None
        made: Sequence[Artifact] = task.result.artifacts if task.status is TaskStatus.DONE and task.result else ()
        texts: list[Any] = [item.value for item in made if item.type == "session_summary"]
        if not texts or not isinstance(texts[0], str) or self.found is None:
            return None
        # What was dropped since Memory was asked stands behind the last line that it was shown.
        since = self.found.state.summary.partition(str(task.context.get(LAST_LINE)))[2]
        return f"{' '.join(texts[0].split())}{since}"

    def _summary_task(self, text: str, version: int) -> tuple[str, list[Write]]:
        """A task for Memory to say better what the log dropped; until it is done, lines of the events stand there."""
        if SUMMARY_ROLE not in self.swarm.roles or SUMMARY_SKILL not in self.swarm.catalog.skills:
            return "", []
        planned = PlannedTask(
            key="conversation-summary",
            assigned_to=SUMMARY_ROLE,
            skill=SUMMARY_SKILL,
            objective=f"summarise what the log of conversation {self.context_id} dropped up to version {version}",
            context={
                "bucket": f"conversation:{self.context_id}"[:100],
                "max_chars": 4_000,
                LAST_LINE: text.rpartition("\n")[2],
            },
            handoff_reason="the log of a conversation is full",
        )
        log = Artifact(type="report", name="conversation log", summary="what the log dropped", value=text)
        try:
            births = self.swarm.board.births(self.held, Handoff((planned,), resume=False))
            mail = self.swarm.mailbox.handoffs(self.held.task, births, TaskResult(artifacts=(log,)), "")
        except (PolicyRefused, GraphInvalid):
            return "", []
        return births[0].task_id, [*(Create(task_path(item.task_id), document(item)) for item in births), *mail]


def _busy(holder: str) -> Snooze:
    return Snooze(BUSY_SECONDS, f"its conversation is in the hands of {holder}", turn_over=False)


def _context_id(task: Task) -> str:
    """The task's own id, or the shared one that its context names: the session is part of that."""
    named = task.context.get(CONTEXT_ID)
    if named is None or named == task.task_id:
        return task.task_id
    if not isinstance(named, str):
        raise InvalidInput(f"context.{CONTEXT_ID} has to be text")
    session = hashlib.sha256(task.session_hash.encode()).hexdigest()[:12]
    return check_context_id(f"{check_context_id(named)[:180]}.{session}")
