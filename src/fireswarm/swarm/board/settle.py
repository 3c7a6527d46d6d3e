"""Settle a turn: convert its outcome to the task's next state, in one atomic commit fenced by the epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, assert_never

from fireswarm.contracts.base import count_noun
from fireswarm.contracts.limits import MAX_ERROR_CHARS, truncate
from fireswarm.contracts.ports import Create, Update, Write
from fireswarm.contracts.swarm.lease import HeldLease
from fireswarm.contracts.swarm.outcome import Done, Failed, Handoff, Outcome, Released, Retry, Snooze, Waiting
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskResult, TaskStatus
from fireswarm.errors import Conflict, StoreError, StoreUnavailable, WorkEdited
from fireswarm.storage.documents.build import plain
from fireswarm.storage.documents.paths import run_path, task_path
from fireswarm.swarm.board import claim, rounds
from fireswarm.swarm.board.dependents import commit_with_dependents
from fireswarm.swarm.board.operator.answers import ask_fields
from fireswarm.swarm.board.rules import BoardContext
from fireswarm.swarm.board.state import count_failure, first_line, queued_fields, unleased_fields, waiting_fields
from fireswarm.swarm.board.submit import document


@dataclass(frozen=True, slots=True)
class Transition:
    """The task's new fields, and the tasks created with them."""

    fields: dict[str, Any]
    births: tuple[Task, ...] = ()

    @property
    def status(self) -> TaskStatus:
        """The task's status after the commit."""
        return TaskStatus(self.fields["status"])

    @property
    def reason(self) -> StatusReason | None:
        """The task's status reason after the commit."""
        reason = self.fields["status_reason"]
        return None if reason is None else StatusReason(reason)


async def settle(board: BoardContext, held: HeldLease, outcome: Outcome, also: Sequence[Write] = ()) -> Transition:
    """Commit *outcome* together with the writes *also* (run, envelopes, memory).

    Raises LeaseLost for a stale epoch, WorkEdited if the task asks for other work by now or its model was not told all
    that was said to it, and StoreUnavailable after repeated conflicts. In these cases nothing is written.
    After another StoreError the same call may be sent again: a commit that was applied all the same is recognized.
    """
    existed = False
    for _ in range(board.rules.settle_attempts):
        if held.over:
            raise held.lost()
        _check_work(held, outcome)
        transition, writes = await _prepare(board, held, outcome)
        writes += also
        try:
            if held.task.dependents:
                summary = transition.fields["summary"]
                await commit_with_dependents(board, held.task, writes, transition.status, transition.reason, summary)
            else:
                await board.store.commit(writes, together=True)
        except StoreError as error:
            held.in_doubt |= error.ambiguous
            raise
        except Conflict as conflict:
            held.in_doubt |= conflict.ambiguous
            if held.in_doubt and await _was_applied(board, held, transition):
                held.over = True
                return transition
            await claim.refresh(board, held)
            if conflict.exists and existed:
                raise
            existed = conflict.exists
            continue
        held.over = True
        if isinstance(outcome, Handoff):
            await rounds.check_after(board, held.task.task_id, outcome)
        return transition
    raise StoreUnavailable(
        f"task {held.task.task_id}: too many write conflicts while settling; "
        "the lease will expire and the task will be retried"
    )


def _check_work(held: HeldLease, outcome: Outcome) -> None:
    """Raise WorkEdited if the turn did other work than the task asks for by now."""
    if held.task.work_id != held.work_id and not isinstance(outcome, Released):
        raise WorkEdited(f"the objective or context of task {held.task.task_id} was edited during its turn")
    if held.unheard and (isinstance(outcome, Done) or (isinstance(outcome, Handoff) and outcome.plans)):
        raise WorkEdited(f"task {held.task.task_id} was told something at the end of its turn")


async def _prepare(board: BoardContext, held: HeldLease, outcome: Outcome) -> tuple[Transition, list[Write]]:
    """Return the transition and its writes: the task, its new tasks, and the children for which these wait."""
    joins: Sequence[rounds.Join] = ()
    if isinstance(outcome, Handoff):
        outcome, joins = await rounds.read_joined(board, outcome)
    transition = transition_of(board, held, outcome)
    fields = transition.fields | {"checkpoint_uri": run_path(held.run_id)}
    writes: list[Write] = [Update(task_path(held.task.task_id), fields, held.version)]
    writes += [Create(task_path(child.task_id), document(child)) for child in transition.births]
    if joins:
        writes += rounds.link(transition.births, joins)
    return transition, writes


async def _was_applied(board: BoardContext, held: HeldLease, transition: Transition) -> bool:
    """Return True if the document has the state that an earlier commit of this settlement would have written."""
    stored = (await board.store.get(task_path(held.task.task_id))).data or {}
    names = {"status", "status_reason", "lease", "error"} & transition.fields.keys()  # others have a random pause
    return stored.get("epoch") == held.epoch and all(stored.get(name) == transition.fields[name] for name in names)


def transition_of(board: BoardContext, held: HeldLease, outcome: Outcome) -> Transition:
    """Compute the task's next state. Depends only on the arguments, the time and the jitter."""
    task = held.task
    match outcome:
        case Done(result=result):
            return _end(task, result)
        case Retry(error=error, after_seconds=float(after), counts=False, schema_version=version):
            until = board.clock.now() + timedelta(seconds=after)
            only = {} if version is None else {"schema_version": version}
            return _block(task, StatusReason.RETRY_BACKOFF, first_line(error), not_before=until, error=error, **only)
        case Retry(error=error, after_seconds=after):
            return _fail(board, held, error, after)
        case Failed(error=error, reason=reason, uncertain_step=uncertain, redo_steps=redo, result=result):
            more: dict[str, Any] = {"uncertain_step": uncertain, "redo_steps": [*redo]} if uncertain or redo else {}
            more |= _so_far(result)
            return _block(task, reason, first_line(error), error=error, attempt=task.attempt + 1, **more)
        case Waiting(reason=reason, summary=summary, questions=questions, schema=schema, result=result):
            asked = ask_fields(task, task.turn + 1, questions)
            wanted: dict[str, Any] = {"answer_schema": schema} if schema or task.answer_schema else {}
            return _block(task, reason, summary, turn=task.turn + 1, **asked, **wanted, **_so_far(result))
        case Handoff():
            return _hand_off(board, held, outcome)
        case Snooze(after_seconds=after, summary=summary, turn_over=over):
            until = board.clock.now() + timedelta(seconds=after)
            turn = task.turn + over
            return _block(task, StatusReason.PAUSED, summary or "paused", not_before=until, turn=turn)
        case Released(summary=summary):
            return Transition(queued_fields(task, summary))
        case _:
            assert_never(outcome)


def _so_far(result: TaskResult) -> dict[str, Any]:
    """Return the artifacts so far as a field of a task that waits or failed."""
    return {"result": plain(result)} if result.artifacts else {}


def _end(task: Task, result: TaskResult) -> Transition:
    fields = unleased_fields(task, TaskStatus.DONE, None, result.summary or "done")
    return Transition(fields | {"error": None, "result": plain(result)})


def _fail(board: BoardContext, held: HeldLease, error: str, after_seconds: float | None) -> Transition:
    """Return the transition of a failed turn: tried again, or given up after all attempts."""
    task, rules = held.task, board.rules
    counts = count_failure(task, rules, went_on=held.activity.steps > 0)
    attempt, setbacks = counts["attempt"], counts["setbacks"]
    if attempt >= task.max_attempts and attempt > task.attempt:
        summary = f"gave up after {attempt} attempts: {first_line(error)}"
        return _block(task, StatusReason.DEAD_LETTER, summary, error=error, **counts)
    pause = rules.backoff_seconds(attempt + setbacks, board.rng) if after_seconds is None else after_seconds
    until = board.clock.now() + timedelta(seconds=pause)
    what = f"attempt {attempt} of {task.max_attempts} failed"
    if setbacks > task.setbacks:
        what = f"failed after new steps ({setbacks} of {rules.max_setbacks} times without a lost attempt)"
    summary = f"{what}, tried again in {pause:.1f} s: {first_line(error)}"
    return _block(task, StatusReason.RETRY_BACKOFF, summary, not_before=until, error=error, **counts)


def _block(
    task: Task, reason: StatusReason, summary: str, *, not_before: datetime | None = None, **more: Any
) -> Transition:
    if "error" in more:
        more["error"] = truncate(str(more["error"]), MAX_ERROR_CHARS)
    return Transition(unleased_fields(task, TaskStatus.BLOCKED, reason, summary, not_before=not_before) | more)


def _hand_off(board: BoardContext, held: HeldLease, handoff: Handoff) -> Transition:
    """Return the transition of a handoff: done, or blocked until the new tasks end."""
    task = held.task
    births = rounds.births_of(board, task, held.epoch, handoff)
    ids = [child.task_id for child in births]
    if not handoff.resume:
        ended = _end(task, handoff.result)
        return Transition(ended.fields | {"children": [*task.children, *ids]}, tuple(births))
    linked = tuple(child.model_copy(update={"dependents": (*child.dependents, task.task_id)}) for child in births)
    summary = handoff.result.summary or f"waits for {count_noun(len(ids), 'task')} it created"
    fields = waiting_fields(task, StatusReason.DELEGATING, summary, board.clock.now())
    fields |= {"children": [*task.children, *ids], "turn": task.turn + 1}
    fields |= rounds.wait_fields(task, births, handoff)
    fields |= {"wakes_on_failure": handoff.plans} if handoff.plans or task.wakes_on_failure else {}
    if handoff.children:
        own = {*task.children} - handoff.unseen  # and not those of the tasks whose conversation it goes on with
        fields["gave_up"] = [each for each in rounds.no_longer_awaited(handoff.children) if each in own]
    fields |= _so_far(handoff.result)
    return Transition(fields, linked)
