"""The Swarm object: one swarm's store, board, records, roles and skills."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from pydantic import ValidationError

from fireswarm.contracts.base import JsonObject, explain_validation
from fireswarm.contracts.ports import Blobs, Clock, ConversationStore, PendingWrites, Snapshot, Store
from fireswarm.contracts.skills.skill import SkillRequest, SkillResult
from fireswarm.contracts.swarm.role import RoleCard
from fireswarm.contracts.swarm.task import Task, TaskResult, TaskSpec, TaskStatus
from fireswarm.errors import InvalidInput, NotDone
from fireswarm.mind import Mind
from fireswarm.runs.sinks.run_reader import RunReader
from fireswarm.settings import Settings
from fireswarm.skills.functions import FunctionSkill
from fireswarm.skills.packs.catalog import Catalog
from fireswarm.skills.running.execute import CodeRules
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.read import parse_readable, parse_task_snapshot
from fireswarm.storage.memory import Memory
from fireswarm.swarm.board import Board
from fireswarm.swarm.board.graph import is_over
from fireswarm.swarm.records.heartbeats import Heartbeats
from fireswarm.swarm.records.mailbox import Mailbox
from fireswarm.swarm.records.run_follower import RunFollower
from fireswarm.swarm.submission.check import check_task

InlineSkill = Callable[[SkillRequest], Awaitable[SkillResult]]
"""A skill that runs on the event loop of the worker."""


async def noop(request: SkillRequest) -> SkillResult:
    """Do nothing and succeed. For benchmarks, tests and trying out a graph."""
    return SkillResult(summary="nothing to do, done")


@dataclass(frozen=True, slots=True)
class TaskEvent:
    """One event of a run. ``payload`` is JSON; docs/observability.md lists the types."""

    task_id: str
    run_id: str
    role: str
    type: str
    at: datetime
    payload: JsonObject


@dataclass(frozen=True, slots=True)
class Swarm:
    """One swarm: its store, board, records, roles and skills.

    Open one with ``Swarm.open`` or ``Swarm.local``. Without a ``mind``, or with one that has no model, roles work by
    code alone. ``protocol`` tells a model how to answer, ``advisor`` how it is asked for advice. ``pending`` holds
    spend that is committed with a journal's next commit. Without ``conversations``, the store keeps conversations.
    """

    settings: Settings
    store: Store
    clock: Clock
    blobs: Blobs
    board: Board
    mailbox: Mailbox
    memory: Memory
    heartbeats: Heartbeats
    roles: Mapping[str, RoleCard]
    catalog: Catalog
    workdir: Path
    inline: Mapping[str, InlineSkill] = field(default_factory=lambda: {"noop": noop})
    processes: anyio.CapacityLimiter | None = None
    mind: Mind | None = None
    protocol: str = ""
    advisor: str = ""
    pending: PendingWrites | None = None
    conversations: ConversationStore | None = None

    @property
    def code_rules(self) -> CodeRules:
        """The operator's rules for the code of skills."""
        runtime = self.settings.runtime
        return CodeRules(runtime.confinement, runtime.pass_environment, self.workdir)

    @staticmethod
    def open(
        store: str | None = None,
        *,
        project: str | None = None,
        session: str | None = None,
        root: Path | str = ".",
        settings: Settings | None = None,
    ) -> AbstractAsyncContextManager[Swarm]:
        """Open a swarm to submit to, wait for and inspect; its roles run elsewhere.

        *store* is ``firelite://HOST:PORT``, ``embedded``, ``memory`` or ``firestore``; *project* names a Google Cloud
        project and implies ``firestore``. Missing values come from *settings*, else from ``swarm.yaml`` in *root*
        and the environment. Raises ConfigError and StoreUnavailable.
        """
        from fireswarm.wiring.embedded import open_for_client

        return open_for_client(store, project=project, session=session, root=Path(root), settings=settings)

    @staticmethod
    def local(
        roles: Mapping[str, Sequence[FunctionSkill | str]] | None = None,
        *,
        store: str = "memory",
        session: str | None = None,
        root: Path | str = ".",
        settings: Settings | None = None,
        clock: Clock | None = None,
    ) -> AbstractAsyncContextManager[Swarm]:
        """Open a swarm and run its roles in this process until the block ends; then they drain.

        *roles* maps a role to its skills: functions made with ``@skill``, or names of skills below *root*. None runs
        the roles of *root*, else the five that ship. *store* is ``memory`` (deleted at the end) or ``embedded``.
        """
        from fireswarm.wiring.embedded import open_local

        return open_local(roles, store=store, session=session, root=Path(root), settings=settings, clock=clock)

    async def submit(
        self,
        objective: str | TaskSpec,
        *,
        role: str = "architect",
        context: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Task:
        """Submit an objective. The same objective and context in one session give the same task.

        *more* are further fields of TaskSpec, such as ``skill``, ``priority``, ``deadline``, ``depends_on`` or
        ``fresh_key``. Raises InvalidInput, NotFound for an unknown role, and StoreError.
        """
        if isinstance(objective, TaskSpec):
            spec = objective
        else:
            fields: dict[str, Any] = {"session_hash": self.settings.session, "context": dict(context or {}), **more}
            try:
                spec = TaskSpec(objective=objective, assigned_to=role, **fields)
            except ValidationError as error:
                raise InvalidInput(f"the task is not valid: {explain_validation(error)}") from error
        self.board.check_role(spec.assigned_to)
        check_task(self.roles, self.catalog, self.inline, spec)
        return (await self.board.submit(spec)).task

    async def wait(self, task: Task | str, *, timeout_seconds: float | None = None) -> Task:
        """Wait until the task ends, or until no task of its objective can move without a person.

        Returns the current task: look at ``status`` and ``status_reason``. Raises TimeoutError after *timeout_seconds*
        of real time, and NotFound for an unknown id.
        """
        task = task if isinstance(task, Task) else await self.get(task)
        with anyio.fail_after(timeout_seconds):
            async with self.store.listen(queries.chain(task.trace.chain_id)) as batches:
                async for snapshots in batches:
                    tasks = parse_readable(snapshots, parse_task_snapshot)
                    if is_over(tasks, task.task_id):
                        break
        return await self.get(task.task_id)

    async def run(
        self,
        objective: str | TaskSpec,
        *,
        role: str = "architect",
        context: Mapping[str, Any] | None = None,
        timeout_seconds: float | None = None,
        **more: Any,
    ) -> TaskResult:
        """Submit an objective, wait for it and return its result. Raises NotDone, with the reason, if it has none."""
        task = await self.wait(
            await self.submit(objective, role=role, context=context, **more), timeout_seconds=timeout_seconds
        )
        if task.status is not TaskStatus.DONE or task.result is None:
            reason = task.status_reason.value if task.status_reason else task.status.value
            raise NotDone(f"task {task.task_id} is {reason}: {await self.board.explain(task)}", task.task_id)
        return task.result

    async def get(self, task_id: str) -> Task:
        """Read one task. Raises NotFound for an unknown id."""
        return await self.board.get(task_id)

    async def cancel(self, task: Task | str, reason: str = "by the program", *, tree: bool = True) -> list[str]:
        """Cancel a task, and with *tree* all tasks below it. Returns the ids that this call canceled."""
        return await self.board.cancel(_id_of(task), reason, tree=tree)

    async def answer(self, task: Task | str, answers: Mapping[str, Any]) -> Task:
        """Answer a blocked task's questions, by their names or ids; the task is queued again.

        With a Task that has questions, the answers count for these questions only: StaleAnswer is raised if others are
        open by now. Raises InvalidInput for missing and mistyped answers.
        """
        return await self.board.answer(_id_of(task), task.bind(answers) if isinstance(task, Task) else answers)

    @asynccontextmanager
    async def events(self, task: Task | str) -> AsyncGenerator[AsyncIterator[TaskEvent]]:
        """Follow the runs of a task's objective: ``async with swarm.events(task) as events``, then iterate.

        Starts with the events so far and ends when the task is over, as ``wait`` does.
        """
        followed = task if isinstance(task, Task) else await self.get(task)
        send, receive = anyio.create_memory_object_stream[TaskEvent](100)
        async with anyio.create_task_group() as group, receive:
            group.start_soon(self._send_events, followed, send)
            yield receive
            group.cancel_scope.cancel()

    async def _send_events(self, task: Task, send: MemoryObjectSendStream[TaskEvent]) -> None:
        """Send the events of the objective's runs to *send* until the task is over."""
        readers: dict[str, RunReader] = {}

        async def report(runs: Sequence[Snapshot]) -> None:
            for run in runs:
                reader = readers.setdefault(run.path, RunReader(self.store))
                for event in await reader.news(run):
                    await send.send(_run_event(run.data or {}, event))

        follower = RunFollower(self.store, self.clock, queries.runs_of(task.trace.chain_id), report)
        async with send, anyio.create_task_group() as group:
            group.start_soon(follower.follow)
            await self.wait(task)
            await follower.read_once()
            group.cancel_scope.cancel()


def _run_event(run: Mapping[str, Any], event: Mapping[str, Any]) -> TaskEvent:
    return TaskEvent(
        task_id=str(run.get("task_id")),
        run_id=str(run.get("run_id")),
        role=str(run.get("role")),
        type=str(event.get("type")),
        at=event["ts"],
        payload=dict(event.get("payload") or {}),
    )


def _id_of(task: Task | str) -> str:
    return task.task_id if isinstance(task, Task) else task
