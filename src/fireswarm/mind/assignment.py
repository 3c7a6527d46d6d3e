"""Input and result of a run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from fireswarm.contracts.grant import Grant
from fireswarm.contracts.skills.skill import ChildResult, PlannedTask, Question, SkillResult
from fireswarm.contracts.skills.tool import Tool
from fireswarm.contracts.swarm.task import Constraints
from fireswarm.errors import SkillFailed
from fireswarm.llm.budget import Spend
from fireswarm.skills.packs.catalog import Skill

RunSkill = Callable[[Skill, Mapping[str, Any], Mapping[str, Any]], Awaitable[SkillResult]]
"""Runs a skill's code on an input and the answers to its questions; publishes its outputs before it returns."""


async def _no_skill_code(skill: Skill, given: Mapping[str, Any], answers: Mapping[str, Any]) -> SkillResult:
    raise SkillFailed(f"skill {skill.name!r} cannot be run: this run has no skill runner")


@dataclass(slots=True)
class Steering:
    """Messages of a person to a run, delivered before the next call of its model.

    ``stopped``: the run was stopped before it goes on; if it has a ``text``, actions that had not ended are not done.
    ``typed`` returns what was typed since it was last called, or "".
    """

    text: str = ""
    stopped: bool = False
    typed: Callable[[], str] = str

    def look(self) -> bool:
        """Add what was typed to the text; returns True if there is something to say."""
        self.text = "\n".join(text for text in (self.text, self.typed()) if text)
        return bool(self.text)

    def take(self) -> str:
        """Return the text once."""
        text, self.text, self.stopped = self.text, "", False
        return text


@dataclass(frozen=True, slots=True)
class Assignment:
    """One task as input of a run.

    ``system`` is the role's prompt. ``skills`` limits the choice; ``named`` is the skill that the task requests.
    ``answers`` are the answers so far, for the prompt; ``answered`` those that a step gets, by step and name. ``phase``
    is the number of earlier phases of the task's run. ``material`` comes from other agents, memory and earlier turns.
    ``check_result`` returns the fault of the structured result of a ``finish``, or "". ``ask`` returns an answer at
    once, if a person is at a terminal. ``grant`` says what the calls may do.

    ``result_schema`` is the JSON Schema of the structured result, ``roles`` are those to delegate work to, and
    ``children`` the results of delegated tasks by their keys.
    ``outputs`` is the folder whose files become artifacts of the task.
    ``next_message`` returns what a person says to an answer, or None at the end of the conversation; ``steering`` is
    what is said before that, to work in progress.
    """

    task: str
    system: str
    grant: Grant
    context: Mapping[str, Any] = field(default_factory=dict)
    constraints: Constraints = Constraints()
    material: str = ""
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
    roles: tuple[str, ...] = ()
    children: Mapping[str, ChildResult] = field(default_factory=dict)
    next_message: Callable[[str], Awaitable[str | None]] | None = None
    steering: Steering = field(default_factory=Steering)
    outputs: Path | None = None

    @property
    def cwd(self) -> Path:
        """The workspace."""
        return self.grant.cwd


class ConclusionStatus(StrEnum):
    """Final state of a run. A blocked one can go on later, when its model can be called again."""

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
        """True for a run that ended by an error, also by one that passes."""
        return self.status in (ConclusionStatus.FAILED, ConclusionStatus.BLOCKED)


UNFINISHED = Conclusion(ConclusionStatus.FAILED, "unfinished", "the run has not ended")
"""The conclusion of a run that is still in progress."""
