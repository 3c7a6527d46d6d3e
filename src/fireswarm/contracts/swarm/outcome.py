"""How one leased turn of a task ends: values, settled in one place (``board.settle``)."""

from __future__ import annotations

from dataclasses import dataclass, field

from fireswarm.contracts.base import JsonObject
from fireswarm.contracts.skills.skill import Fact, PlannedTask, Question
from fireswarm.contracts.swarm.task import StatusReason, TaskResult


@dataclass(frozen=True, slots=True)
class Done:
    """The work is finished; ``facts`` are remembered in the same commit."""

    result: TaskResult = field(default_factory=TaskResult)
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class Retry:
    """It failed in a way that trying again can help; ``after_seconds`` overrides the back-off."""

    error: str
    after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """It failed in a way that trying again cannot help: dead letter, or ``escalated`` to a human."""

    error: str
    reason: StatusReason = StatusReason.DEAD_LETTER


@dataclass(frozen=True, slots=True)
class Waiting:
    """Somebody has to supply something; ``questions`` say what, ``schema`` what all inputs together must satisfy."""

    reason: StatusReason
    summary: str
    questions: tuple[Question, ...] = ()
    schema: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Handoff:
    """Create ``tasks``; with ``resume`` this task runs again when all of them ended, else it is done.

    ``result`` travels to each new task in its envelope, and stays on this task.
    """

    tasks: tuple[PlannedTask, ...]
    resume: bool = True
    result: TaskResult = field(default_factory=TaskResult)
    notes: str = ""
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class Snooze:
    """Look again after ``after_seconds``; no attempt is counted. Not ``turn_over``: the turn has not begun."""

    after_seconds: float
    summary: str = ""
    turn_over: bool = True


@dataclass(frozen=True, slots=True)
class Released:
    """The holder gives the task back unfinished (drain): it is queued again, no attempt is counted."""

    summary: str = "released by an agent that is stopping"


Outcome = Done | Retry | Failed | Waiting | Handoff | Snooze | Released
