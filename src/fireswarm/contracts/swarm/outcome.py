"""The outcomes of a leased turn: values that are settled in one place (``board.settle``)."""

from __future__ import annotations

from dataclasses import dataclass, field

from fireswarm.contracts.base import JsonObject
from fireswarm.contracts.skills.skill import Fact, PlannedTask, Question
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskResult


@dataclass(frozen=True, slots=True)
class Done:
    """The work is finished; ``facts`` are stored in the same commit."""

    result: TaskResult = field(default_factory=TaskResult)
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class Retry:
    """A transient failure; ``after_seconds`` overrides the back-off.

    ``counts`` is false for a failure that is not the task's, such as a pause requested by a provider. With
    ``schema_version``, only agents of that version or a newer one try again.
    """

    error: str
    after_seconds: float | None = None
    counts: bool = True
    schema_version: int | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """A permanent failure: dead letter, or ``escalated`` for review.

    ``uncertain_step`` needs a decision before a retry; ``redo_steps`` are the steps that a retry runs again. ``result``
    has what was made before, such as a report of what failed.
    """

    error: str
    reason: StatusReason = StatusReason.DEAD_LETTER
    uncertain_step: str = ""
    redo_steps: tuple[str, ...] = ()
    result: TaskResult = field(default_factory=TaskResult)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Inputs are missing; ``questions`` ask for them, and all inputs together must satisfy ``schema``.

    ``result`` has the task's results so far.
    """

    reason: StatusReason
    summary: str
    questions: tuple[Question, ...] = ()
    schema: JsonObject = field(default_factory=dict)
    result: TaskResult = field(default_factory=TaskResult)


@dataclass(frozen=True, slots=True)
class Revision:
    """A new task that goes on with the conversation of ``task``, told the ``feedback``: sent back, or asked something.

    ``key`` is its key in the plan; without one, it is the task's own with a number.
    """

    task: Task
    feedback: str
    key: str = ""


@dataclass(frozen=True, slots=True)
class Handoff:
    """Create ``tasks``. With ``resume`` this task runs again when all of them have ended; otherwise it is done.

    ``result`` is sent to each new task in its envelope, and stays on this task. ``children`` are the earlier children,
    as this turn saw them: new tasks may depend on them, and this task also waits for those at work. With ``plans``, it
    runs again as soon as a child is given up, or one of those whose failure is ``unseen`` so far.
    """

    tasks: tuple[PlannedTask, ...]
    resume: bool = True
    result: TaskResult = field(default_factory=TaskResult)
    notes: str = ""
    facts: tuple[Fact, ...] = ()
    revisions: tuple[Revision, ...] = ()
    children: tuple[Task, ...] = ()
    plans: bool = False
    unseen: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Snooze:
    """Run again after ``after_seconds``, which does not count as an attempt.

    Without ``turn_over`` the turn has not started.
    """

    after_seconds: float
    summary: str = ""
    turn_over: bool = True


@dataclass(frozen=True, slots=True)
class Released:
    """The holder returns the task unfinished (drain): it is queued again, which does not count as an attempt."""

    summary: str = "released by a stopping agent"


Outcome = Done | Retry | Failed | Waiting | Handoff | Snooze | Released
