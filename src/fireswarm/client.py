"""The client of a swarm: open a swarm, submit tasks, follow them, and answer their questions."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import anyio

from fireswarm.contracts.ports import Clock
from fireswarm.contracts.skills.permissions import NO, PLAN, REASON, YES
from fireswarm.contracts.skills.skill import Fact, PlannedTask
from fireswarm.contracts.swarm.agent import DEFAULT_ROLE
from fireswarm.contracts.swarm.event import TaskEvent
from fireswarm.contracts.swarm.task import (
    AnyTask,
    StatusReason,
    Submitted,
    Task,
    TaskResult,
    TaskSpec,
    TaskStatus,
    id_of,
)
from fireswarm.contracts.swarm.task_fields import TaskFields, make_spec
from fireswarm.errors import InvalidInput, NotDone
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.find import find_by_id
from fireswarm.storage.documents.paths import TASKS
from fireswarm.storage.documents.read import parse_task_snapshot
from fireswarm.swarm.board.operator.answers import check_by_id, with_approval
from fireswarm.swarm.records.idle_mail import find_idle_mail
from fireswarm.swarm.records.objective import parse_objective, until_over
from fireswarm.swarm.records.orders import AgentOrders, explain_task
from fireswarm.swarm.records.run_follower import send_events
from fireswarm.swarm.submission.arguments import (
    Amount,
    FactId,
    JsonValue,
    Natural,
    Seconds,
    TaskId,
    Whole,
    check_arguments,
)
from fireswarm.swarm.worker.task_groups import task_group

if TYPE_CHECKING:  # imports the mind and the skills, which `swarm --help` does not need
    from fireswarm.settings import Settings
    from fireswarm.skills.functions import FunctionSkill
    from fireswarm.swarm.board.operator.stalls import Stall
    from fireswarm.swarm.parts import SwarmParts
    from fireswarm.swarm.schedules.manage import Schedules

TRIED_AGAIN = frozenset(map(StatusReason, ("dead_letter", "deadline_exceeded", "needs_model", "needs_confinement")))
"""Reasons for which ``run`` tries a task of an earlier call again; others wait for a person's decision."""


@check_arguments
@dataclass(frozen=True, slots=True)
class Swarm:
    """The client of one swarm. Open one with ``Swarm.open`` or ``Swarm.local``.

    Methods that take a task accept a task from ``submit`` or from a read, or its id. ``parts`` are the store, board,
    records, roles and skills that a ``Worker`` needs.
    """

    parts: SwarmParts

    @staticmethod
    @asynccontextmanager
    async def open(
        store: str | None = None,
        *,
        project: str | None = None,
        session: str | None = None,
        root: Path | str = ".",
        settings: Settings | None = None,
        create: bool = True,
    ) -> AsyncGenerator[Swarm]:
        """Open a swarm whose roles run elsewhere, to submit tasks, wait for them and inspect them.

        *store* is ``firelite://HOST:PORT``, ``embedded``, ``memory`` or ``firestore``; *project* names a Google Cloud
        project and implies ``firestore``. Missing values come from *settings*, or else from ``swarm.yaml`` in *root*
        and the environment. Without *create*, an embedded store that does not exist yet is empty, and no file is
        written. Raises ConfigError and StoreUnavailable.
        """
        from fireswarm.swarm.opening.in_program import open_for_client

        async with open_for_client(
            store, project=project, session=session, root=Path(root), settings=settings, create=create
        ) as parts:
            yield Swarm(parts)

    @staticmethod
    @asynccontextmanager
    async def local(
        roles: Mapping[str, Sequence[FunctionSkill | str]] | None = None,
        *,
        store: str = "memory",
        session: str | None = None,
        root: Path | str = ".",
        settings: Settings | None = None,
        clock: Clock | None = None,
    ) -> AsyncGenerator[Swarm]:
        """Open a swarm and run its roles in this process until the block ends; then they drain.

        *roles* maps a role to its skills: functions made with ``@skill``, or names of skills below *root*. None runs
        the roles of *root*, or else the five packaged ones. *store* is ``memory`` (deleted at the end) or ``embedded``.
        """
        from fireswarm.swarm.opening.in_program import open_local

        async with open_local(
            roles, store=store, session=session, root=Path(root), settings=settings, clock=clock
        ) as parts:
            yield Swarm(parts)

    @property
    def session(self) -> str:
        """The session of tasks that are submitted as an objective."""
        return self.parts.settings.session

    @property
    def orders(self) -> AgentOrders:
        """Pauses, resumes and drains roles and agents."""
        return AgentOrders(self.parts.board, self.parts.heartbeats, self.session)

    @property
    def schedules(self) -> Schedules:
        """Sets, pauses, runs and removes schedules: objectives that are submitted again and again."""
        from fireswarm.swarm.schedules.manage import Schedules

        return Schedules(self.parts)

    async def submit(
        self,
        objective: str | TaskSpec,
        *,
        role: str = DEFAULT_ROLE,
        context: Mapping[str, Any] | None = None,
        **more: Unpack[TaskFields],
    ) -> Submitted:
        """Submit an objective. The same objective and context in one session give the same task.

        *more* are further fields of TaskSpec, such as ``skill``, ``priority`` or ``depends_on``; not with a TaskSpec.
        Raises InvalidInput, also for an unknown role, skill or capability, QueueFull, and StoreError.
        """
        from fireswarm.swarm.submission.submit_task import submit_task

        if isinstance(objective, TaskSpec):
            if more or context is not None or role != DEFAULT_ROLE:
                raise InvalidInput("a TaskSpec has all fields of its task: set role, context and others in it")
            return await submit_task(self.parts, objective)
        fields: dict[str, Any] = {"session_hash": self.session, "context": dict(context or {}), **more}
        return await submit_task(self.parts, make_spec(objective=objective, assigned_to=role, **fields))

    async def run(
        self,
        objective: str | TaskSpec,
        *,
        role: str = DEFAULT_ROLE,
        context: Mapping[str, Any] | None = None,
        timeout_seconds: Seconds | None = None,
        **more: Unpack[TaskFields],
    ) -> TaskResult:
        """Submit an objective, wait for it and return its result.

        An objective that failed in an earlier call is tried again. Raises NotDone with the reason if there is no
        result, and TimeoutError after *timeout_seconds* of real time.
        """
        submitted = await self.submit(objective, role=role, context=context, **more)
        if not submitted.created and submitted.task.status_reason in TRIED_AGAIN:
            await self.retry(submitted)
        task = await self.wait(submitted, timeout_seconds=timeout_seconds)
        if task.status is not TaskStatus.DONE or task.result is None:
            reason = task.status_reason.value if task.status_reason else task.status.value
            raise NotDone(f"task {task.task_id} is {reason}: {await self.explain(task)}", task.task_id)
        return task.result

    async def get(self, task: AnyTask) -> Task:
        """Read one task. Raises NotFound for an unknown id."""
        return await self.parts.board.get(id_of(task))

    async def find(self, prefix: TaskId) -> Task:
        """Return the one task whose id begins with *prefix*. Raises NotFound or InvalidInput."""
        unknown = f"there is no task {prefix}: `swarm tasks` lists the tasks"
        return parse_task_snapshot(await find_by_id(self.parts.store, TASKS, (prefix,), unknown))

    async def tasks(
        self,
        *,
        status: TaskStatus | str | None = None,
        role: str | None = None,
        session: str | None = None,
        limit: Natural = 50,
    ) -> list[Task]:
        """Return up to *limit* tasks, most recently changed first: of all sessions, or of *session*."""
        return await self.parts.board.list(limit=limit, status=status, assigned_to=role, session_hash=session)

    async def objective(self, task: AnyTask) -> list[Task]:
        """Return the tasks of a task's objective: parents before children, then by dependencies."""
        return parse_objective(await self.parts.store.query(queries.chain((await self._read(task)).trace.chain_id)))

    async def relatives(self, task: AnyTask) -> dict[str, Task]:
        """Return the tasks that a task depends on, created or repeats, by id."""
        return await self.parts.board.relatives(await self._read(task))

    async def explain(self, task: AnyTask, relatives: Mapping[str, Task] | None = None) -> str:
        """Return what a task waits for and how to move it, in one or two sentences; reads *relatives* if omitted."""
        return await explain_task(self.parts.board, self.parts.heartbeats, await self._read(task), relatives)

    async def stalls(self) -> list[Stall]:
        """Return tasks, then messages, that no worker will ever process, each with the way to continue it."""
        return [*await self.parts.board.stalls(), *await find_idle_mail(self.parts.store, self.parts.roles)]

    async def wait(self, task: AnyTask, *, timeout_seconds: Seconds | None = None) -> Task:
        """Wait until the task ends, or until its objective needs a person.

        Returns the task: check ``status`` and ``status_reason``. Raises TimeoutError after *timeout_seconds*, NotFound.
        """
        with anyio.move_on_after(timeout_seconds) as limit:
            async with self.follow(task) as changes:
                async for _ in changes:
                    pass
        current = await self.get(task)
        if limit.cancelled_caught:
            why = await self.explain(current)
            raise TimeoutError(f"task {current.task_id} has not ended after {timeout_seconds:g} s: {why}")
        return current

    @asynccontextmanager
    async def follow(self, task: AnyTask) -> AsyncGenerator[AsyncIterator[list[Task]]]:
        """Follow the tasks of a task's objective: ``async with swarm.follow(task) as changes``, then iterate.

        Yields all of them after each change, in the order of ``objective``, and ends like ``wait``.
        """
        followed = await self._read(task)
        async with (
            self.parts.store.listen(queries.chain(followed.trace.chain_id)) as batches,
            aclosing(until_over(batches, followed.task_id)) as changes,
        ):
            yield changes

    @asynccontextmanager
    async def events(self, task: AnyTask) -> AsyncGenerator[AsyncIterator[TaskEvent]]:
        """Follow the runs of a task's objective: ``async with swarm.events(task) as events``, then iterate.

        Starts with the earlier events and ends like ``wait``.
        """
        followed = await self._read(task)
        send, receive = anyio.create_memory_object_stream[TaskEvent](100)
        async with task_group() as group, receive:
            over = partial(self.wait, followed)
            group.start_soon(send_events, self.parts.store, self.parts.clock, followed, over, send)
            yield receive
            group.cancel_scope.cancel()

    async def answer(self, task: AnyTask, answers: Mapping[str, Any], *, by_id: bool = False) -> Task:
        """Answer a blocked task's questions, by their names or ids; the task is queued again.

        Answers to a Task with questions are valid only for these questions: StaleAnswer is raised if others are open by
        now. With *by_id*, names are refused. Raises InvalidInput for missing and mistyped answers.
        """
        given = task.bind(answers) if isinstance(task, Task) else answers

        def accept(current: Task) -> None:
            if by_id:
                check_by_id(current, answers)

        return await self.parts.board.answer(id_of(task), given, accept=accept)

    async def say(self, task: AnyTask, text: str, *, message_id: str = "") -> Task:
        """Say something to a task's model, and return the task that hears it.

        A task that has not ended hears it before its model's next call. A finished objective gets a follow-up: a new
        task with the same conversation, files and memory, which also hears what is said to the objective later. The
        same *message_id* is said once. Raises InvalidInput and TerminalTask.
        """
        current = await self.get(task)
        if current.status is TaskStatus.DONE:
            return (await self.parts.board.go_on(current.task_id, text, message_id)).task
        return await self.parts.board.say(current.task_id, text, message_id=message_id)

    async def fork(
        self,
        task: AnyTask,
        before: Natural,
        *,
        text: str = "",
        model: str | None = None,
        objective: str | None = None,
        context: Mapping[str, Any] | None = None,
        again: str = "",
    ) -> Submitted:
        """Fork an objective: a new task has its steps before the model's answer number *before*, and goes on there.

        *text* is said to the model, which may be another *model*; *objective* and *context* replace those of the task.
        The same fork gives the same task, unless *again* differs. Files are as they are now. Raises InvalidInput, also
        for a part of a plan, and an answer that the model has not given before it planned.
        """
        from fireswarm.swarm.submission.fork_task import Fork, fork_task

        fork = Fork(before, text, model, objective, None if context is None else dict(context), again)
        return await fork_task(self.parts, id_of(task), fork)

    async def approve(
        self, task: AnyTask, question: str = "", *, always: bool = False, plan: Sequence[PlannedTask] | None = None
    ) -> Task:
        """Allow the action that a task asks for; with *always*, also later in this task and the tasks it plans.

        *question* is the id of the request. Without it, the request in the given Task is approved: an id alone does not
        say which action. *plan* are the tasks to run in place of those that a request for the review of a plan shows.
        Raises StaleAnswer if the request is no longer open, and GraphInvalid for a plan that cannot run.
        """
        seen = await self._read_for(task, question)
        changed = {} if plan is None else {PLAN: self.parts.board.plan_as_json(plan)}
        return await self.answer(id_of(task), with_approval(seen, question, YES, always=always, also=changed))

    async def draft(self, task: AnyTask, plan: Sequence[PlannedTask]) -> Sequence[Task]:
        """Return the tasks that a plan of *task* would create. Raises GraphInvalid for a plan that cannot run."""
        return self.parts.board.draft(await self._read(task), plan)

    async def deny(self, task: AnyTask, question: str = "", *, reason: str = "") -> Task:
        """Refuse the action that a task asks for; the model gets *reason*. See ``approve``."""
        seen = await self._read_for(task, question)
        also = {REASON: reason} if reason else {}
        return await self.answer(id_of(task), with_approval(seen, question, NO, also=also))

    async def retry(
        self, task: AnyTask, *, redo: Sequence[str] = (), skip: Sequence[str] = (), turns: Whole = 0
    ) -> Task:
        """Queue a failed or paused task again; its attempts are counted from zero.

        *redo* and *skip* name steps that the task gave up on: to run again, or to treat as done. *turns* are additional
        decisions of its model. Raises InvalidInput for other steps, for a step without a decision, and for a task that
        cannot be retried.
        """
        return await self.parts.board.retry(id_of(task), redo=redo, skip=skip, turns=turns)

    async def retry_tree(self, task: AnyTask, reason: StatusReason | str | None = None) -> list[Task]:
        """Queue a task again, and all tasks below it that stopped for the same reason; returns them.

        Raises InvalidInput if none can be, and, without *reason*, if it waits for tasks that stopped for several.
        """
        return await self.parts.board.retry_tree(id_of(task), None if reason is None else StatusReason(reason))

    async def budget(self, target: AnyTask, *, usd: Amount | None = None, tokens: Natural | None = None) -> None:
        """Set the budget of an objective (by its first task), of another task, of the ``session`` or of the ``day``.

        It applies at once, also to running tasks. Raises InvalidInput and TerminalTask.
        """
        from fireswarm.swarm.records.budgets import DAY, SESSION, check_amounts, scope_write

        amounts = check_amounts(tokens, usd)
        if target in (SESSION, DAY):
            await self.parts.store.commit([scope_write(str(target), self.session, self.parts.clock.now(), amounts)])
        else:
            await self.parts.board.set_budget(id_of(target), amounts)

    async def prioritize(self, task: AnyTask, priority: Natural) -> Task:
        """Set the priority of a task that has not ended, 1 to 10; 10 is first. Raises InvalidInput and TerminalTask."""
        return await self.parts.board.prioritize(id_of(task), priority)

    async def cancel(self, task: AnyTask, reason: str = "by the program", *, tree: bool = True) -> list[str]:
        """Cancel a task, and with *tree* all tasks below it. Returns the ids that this call canceled."""
        return await self.parts.board.cancel(id_of(task), reason, tree=tree)

    async def recall(self, query: str, *, limit: Natural = 20) -> list[Fact]:
        """Return the session's valid facts and summaries that share a word with *query*, best first."""
        return await self.parts.memory.recall(self.session, query, limit)

    async def fact_history(self, fact: FactId) -> list[Fact]:
        """Return the values that a fact has had, newest first. Raises NotFound or InvalidInput for its id."""
        return await self.parts.memory.history(fact)

    async def mark_fact(self, fact: FactId, *, wrong: bool = True, reason: str = "") -> Fact:
        """Mark a fact as wrong (agents are not told it), or unmark it; *fact* begins its id. Raises NotFound."""
        return await self.parts.memory.mark(fact, wrong=wrong, reason=reason)

    async def correct_fact(self, fact: FactId, value: JsonValue) -> Fact:
        """Replace the value of a fact; the earlier one is kept in its history. Raises NotFound and InvalidInput."""
        return await self.parts.memory.correct(fact, value)

    async def forget_fact(self, fact: FactId) -> None:
        """Delete a fact or a summary with all its earlier values. Raises NotFound and InvalidInput."""
        await self.parts.memory.forget(fact)

    async def _read(self, task: AnyTask) -> Task:
        """Return the given task, or read it."""
        return task if isinstance(task, Task) else await self.get(task)

    async def _read_for(self, task: AnyTask, question: str) -> Task:
        """Return the task with the request to decide on. Raises InvalidInput if the request is unclear."""
        if not isinstance(task, Task) and not question:
            raise InvalidInput(f"task {id_of(task)}: give the id of the request, or a task that was read")
        return await self._read(task)
