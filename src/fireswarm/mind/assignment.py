"""Input and result of a run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from fireswarm.contracts.grant import Grant
from fireswarm.contracts.skills.given_files import GivenFiles
from fireswarm.contracts.skills.skill import Check, PlannedTask, Question, SkillResult
from fireswarm.contracts.skills.tool import Tool
from fireswarm.contracts.swarm.constraints import Constraints
from fireswarm.errors import SkillFailed
from fireswarm.llm.budget import Spend
from fireswarm.skills.packs.catalog import Skill

RunSkill = Callable[[Skill, Mapping[str, Any], Mapping[str, Any]], Awaitable[SkillResult]]
"""Runs a skill's code on an input and the answers to its questions; publishes its outputs before it returns."""


@dataclass(frozen=True, slots=True)
class Colleague:
    """Another agent: its role, and the id of the task whose conversation answers; "" for a role without one."""

    role: str
    task_id: str = ""


class Colleagues(Protocol):
    """The other agents of the objective. Both methods raise InvalidInput for an unknown one."""

    async def find(self, name: str) -> Colleague:
        """Return the agent to ask: a key of the plan, ``parent``, or a role."""
        ...

    async def tell(self, name: str, message: str, step: str) -> str:
        """Tell an agent something, once for each *step*; returns who hears it."""
        ...


async def _no_skill_code(skill: Skill, given: Mapping[str, Any], answers: Mapping[str, Any]) -> SkillResult:
    raise SkillFailed(f"skill {skill.name!r} cannot be run: this run has no skill runner")


async def _no_facts() -> str:
    return ""


@dataclass(slots=True)
class Steering:
    """Messages of a person to a run, delivered before the next call of its model.

    ``stopped`` is True if the run was stopped before; actions that were open then are left out if there is a ``text``.
    ``typed`` returns what was typed since its last call, or "".
    """

    text: str = ""
    stopped: bool = False
    typed: Callable[[], str] = str

    def look(self) -> bool:
        """Append new input to the text; returns True if there is any text."""
        self.text = "\n".join(text for text in (self.text, self.typed()) if text)
        return bool(self.text)

    def take(self) -> str:
        """Return the text and clear it."""
        text, self.text, self.stopped = self.text, "", False
        return text


class SessionMemory(Protocol):
    """The facts of the session, for a model. Both methods return text, and raise InvalidInput for unusable input.

    ``remember`` stores a fact once for each *step*: a repeated step writes the same document.
    """

    async def recall(self, query: str) -> str:
        """Return the facts that fit a query."""
        ...

    async def remember(
        self, step: str, fact: str, evidence: Sequence[str], *, name: str = "", replaces: str = ""
    ) -> str:
        """Store a fact and return its id."""
        ...


@dataclass(frozen=True, slots=True)
class Assignment:
    """One task as input of a run.

    ``system`` is the role's prompt. ``skills`` limits the choice; ``named`` is the skill that the task requests.
    ``answers`` are the answers so far, for the prompt; ``answered`` holds the answers for each step, by step and name.
    ``phase`` is the number of earlier phases of the task's run. ``material`` comes from other agents and earlier
    turns. ``facts`` returns what the session knows about the task; with ``memory``, the model can search that and add
    to it.
    ``check_result`` returns the fault of the structured result of a ``finish``, or "". ``ask`` returns an answer
    immediately if a person is at a terminal. ``grant`` holds what the calls may use.

    ``result_schema`` is the JSON Schema of the structured result, ``roles`` are those to delegate work to, with what
    each does, ``models`` those that may be chosen for it (True: with an effort), and ``children`` the results of
    delegated tasks in words, by their keys, None for one at work. ``outputs`` is the folder whose files become
    artifacts of the task, ``inputs`` are the files that it was given, ``colleagues`` the agents to talk to. ``checks``
    run before the run ends, and send the work back at most ``max_revisions`` times. ``plan_to_approve`` returns the
    plan of a structured result that a person has to approve, or "". ``next_message`` returns a person's reply to an
    answer, or None at the end of the conversation; ``steering`` holds messages sent while the work is in progress. The
    model is told the time left until ``deadline``, counted from ``began_at``.
    """

    task: str
    system: str
    grant: Grant
    context: Mapping[str, Any] = field(default_factory=dict)
    constraints: Constraints = Constraints()
    material: str = ""
    facts: Callable[[], Awaitable[str]] = _no_facts
    memory: SessionMemory | None = None
    skills: tuple[str, ...] | None = None
    named: str | None = None
    answers: Mapping[str, Any] = field(default_factory=dict)
    answered: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    phase: int = 0
    result_form: str = ""
    check_result: Callable[[Mapping[str, Any]], str] | None = None
    ask: Callable[[Question], Awaitable[str | None]] | None = None
    run_skill: RunSkill = _no_skill_code
    tools: Mapping[str, Tool] = field(default_factory=dict)
    dry_run: bool = False
    extra_decisions: int = 0
    result_schema: Mapping[str, Any] | None = None
    roles: Mapping[str, str] = field(default_factory=dict[str, str])
    models: Mapping[str, bool] = field(default_factory=dict[str, bool])
    children: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    next_message: Callable[[str], Awaitable[str | None]] | None = None
    steering: Steering = field(default_factory=Steering)
    outputs: Path | None = None
    inputs: GivenFiles | None = None
    colleagues: Colleagues | None = None
    checks: tuple[Check, ...] = ()
    expected_outcome: str = ""
    max_revisions: int = 0
    plan_to_approve: Callable[[Mapping[str, Any]], str] | None = None
    began_at: datetime | None = None
    deadline: datetime | None = None

    @property
    def cwd(self) -> Path:
        """The workspace."""
        return self.grant.cwd


class ConclusionStatus(StrEnum):
    """Final state of a run. A blocked run can be resumed when its model can be called again."""

    FINISHED = "finished"
    DRY_RUN = "dry_run"
    WAITING = "input_required"
    DELEGATING = "delegating"
    BLOCKED = "blocked"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Conclusion:
    """Result of a run. ``reason`` is a stable code, ``answer`` is for people; ``error`` is the cause of a failure."""

    status: ConclusionStatus
    reason: str = ""
    answer: str = ""
    result: Mapping[str, Any] = field(default_factory=dict)
    skill: str = ""
    turns: int = 0
    spend: Spend = field(default_factory=Spend)
    outputs: tuple[SkillResult, ...] = ()
    questions: tuple[Question, ...] = ()
    tasks: tuple[PlannedTask, ...] = ()
    error: Exception | None = None

    @property
    def failed(self) -> bool:
        """True for a run that ended with an error, including a temporary one."""
        return self.status in (ConclusionStatus.FAILED, ConclusionStatus.BLOCKED)


UNFINISHED = Conclusion(ConclusionStatus.FAILED, "unfinished", "the run has not ended")
"""The conclusion of a run that is still in progress."""
