"""State of a turn: its lease, inputs and engine, and the writes committed with its outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from fireswarm.contracts.limits import MAX_ERROR_CHARS, truncate
from fireswarm.contracts.ports import Write
from fireswarm.contracts.skills.skill import SkillRequest, SkillResult
from fireswarm.contracts.swarm.envelope import Envelope
from fireswarm.contracts.swarm.outcome import Done, Failed, Handoff, Outcome, Retry, Revision, Waiting
from fireswarm.contracts.swarm.role import RoleCard
from fireswarm.contracts.swarm.run import RunStatus
from fireswarm.contracts.swarm.task import Task
from fireswarm.runs.sinks.documents import Journal
from fireswarm.swarm.board import HeldLease
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.turn.conversation import NoConversation, TaskConversation

PLANNED = "planned"
"""Journal step that marks a plan as handed out. The turns after it are a new phase with separate steps."""


class TurnEnd(NamedTuple):
    """A turn's outcome, and the writes that are committed with it."""

    outcome: Outcome
    writes: tuple[Write, ...]


class Engine(Protocol):
    """Produces the result of a turn."""

    @property
    def because(self) -> str:
        """Reason for using no model, or ""."""
        ...

    async def run(self, turn: Turn) -> SkillResult:
        """Return the result. Raises the error of the work."""
        ...


@dataclass(frozen=True, slots=True)
class Relatives:
    """What hands inputs to a task: the tasks that it depends on, its children, and the envelope of its conversation.

    ``earlier`` are the tasks whose conversation it goes on with, the oldest first; their children are its own too.
    """

    dependencies: Sequence[Task] = ()
    children: Sequence[Task] = ()
    envelope: Envelope | None = None
    earlier: Sequence[Task] = ()


@dataclass(slots=True)
class Turn:
    """One leased task during its turn.

    The first two steps of ``run_turn`` set ``request``, ``relatives`` and ``engine``. ``origins`` maps local
    copies of artifacts to their original URIs. ``objective_folder`` is the folder of a planned task's objective, to
    which paths in rules are relative. ``plans`` is True if the result is a round of a plan, ``revisions`` are
    the finished tasks that it sends back, ``unseen`` the children whose failure its model has not been told.
    """

    lease: HeldLease
    swarm: SwarmParts
    journal: Journal
    task: Task
    card: RoleCard
    request: SkillRequest = field(init=False)
    engine: Engine = field(init=False)
    relatives: Relatives = Relatives()
    objective_folder: Path | None = None
    plans: bool = False
    revisions: Sequence[Revision] = ()
    unseen: frozenset[str] = frozenset()
    conversation: TaskConversation | NoConversation = field(default_factory=NoConversation)
    origins: dict[str, str] = field(default_factory=dict)
    writes: list[Write] = field(default_factory=list)

    @property
    def used_rounds(self) -> int:
        """How often the role has changed its plan so far; a round in which it only waited does not count."""
        plans = [kept or {} for step, kept in self.journal.known.finished.items() if step.startswith(f"{PLANNED}:")]
        return sum((kept.get("result") or {}).get("changes", True) for kept in plans)

    def end(self, outcome: Outcome, *, discard: bool = False) -> TurnEnd:
        """Close the run and return the end of the turn; with *discard*, without the gathered writes."""
        writes = () if discard else self.writes
        return TurnEnd(outcome, (*writes, *_closing_writes(self.journal, outcome)))


def _closing_writes(journal: Journal, outcome: Outcome) -> Sequence[Write]:
    match outcome:
        case Done(result=result) | Handoff(result=result):
            return journal.closing(RunStatus.COMPLETED, result.summary, result, None)
        case Waiting(summary=summary):
            return journal.closing(RunStatus.COMPLETED, f"waits: {summary}", None, None)
        case Retry(error=error) | Failed(error=error):
            return journal.closing(
                RunStatus.ERROR, error.splitlines()[0] if error else "failed", None, truncate(error, MAX_ERROR_CHARS)
            )
        case _:
            return journal.closing(RunStatus.COMPLETED, outcome.summary, None, None)
