"""The requests of the protocol, for the agent of one role. The board is the store of tasks; the server has none."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC
from typing import Never

from a2a import types
from a2a.server.context import ServerCallContext
from a2a.server.events import Event
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.utils.constants import DEFAULT_LIST_TASKS_PAGE_SIZE
from a2a.utils.errors import (
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    UnsupportedOperationError,
)
from a2a.utils.proto_utils import validate_proto_required_fields
from a2a.utils.task import apply_history_length, validate_history_length, validate_page_size

from fireswarm.api.a2a.faults import protocol_errors
from fireswarm.api.a2a.messages import CREATED_BY, MessageDesk
from fireswarm.api.a2a.states import ENDED, RESTS, STATUS_OF, state_of
from fireswarm.api.a2a.streams import TaskStreams
from fireswarm.api.a2a.views import TaskViews
from fireswarm.api.reading.task_pages import TaskFilters, read_task_page
from fireswarm.client import Swarm
from fireswarm.contracts.swarm.task import Task
from fireswarm.redaction import Redactor
from fireswarm.storage.documents import queries

MAX_COUNTED = 10_000
"""Largest total of a list: counting reads the index of all counted tasks."""

CANCEL_REASON = "by an A2A client"


@dataclass(frozen=True, slots=True)
class RoleAgent(RequestHandler):
    """The agent of one role: ``desk`` takes messages, ``views`` shows tasks, ``streams`` follows them."""

    swarm: Swarm
    redactor: Redactor
    desk: MessageDesk
    views: TaskViews
    streams: TaskStreams

    async def on_message_send(self, params: types.SendMessageRequest, context: ServerCallContext) -> types.Task:
        """Deliver a message; return its task at once, or when it has ended or needs input."""
        with protocol_errors(self.redactor):
            task = await self._deliver(params)
            if not params.configuration.return_immediately:
                async with aclosing(self.streams.follow(task, context, blocking=True)) as changes:
                    async for tree in changes:
                        if state_of(_find(tree, task), tree) in RESTS:
                            break
            view = await self.views.task(await self.desk.read(task.task_id))
            return apply_history_length(view, params.configuration)

    async def on_message_send_stream(
        self, params: types.SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event]:
        """Deliver a message and stream its task."""
        with protocol_errors(self.redactor):
            task = await self._deliver(params)
            async with aclosing(self._stream(task, context, params.configuration)) as events:
                async for event in events:
                    yield event

    async def on_subscribe_to_task(
        self, params: types.SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event]:
        """Stream a task that has not ended."""
        with protocol_errors(self.redactor):
            validate_proto_required_fields(params)
            task = await self.desk.read(params.id)
            if state_of(task, ()) in ENDED:
                raise UnsupportedOperationError(f"task {task.task_id} has ended: get it instead")
            async with aclosing(self._stream(task, context, types.SendMessageConfiguration())) as events:
                async for event in events:
                    yield event

    async def on_get_task(self, params: types.GetTaskRequest, context: ServerCallContext) -> types.Task:
        """Return a task."""
        with protocol_errors(self.redactor):
            validate_proto_required_fields(params)
            validate_history_length(params)
            return apply_history_length(await self.views.task(await self.desk.read(params.id)), params)

    async def on_list_tasks(
        self, params: types.ListTasksRequest, context: ServerCallContext
    ) -> types.ListTasksResponse:
        """List the tasks of the role, most recently changed first; files are given by address only.

        A page has fewer tasks than asked for if others have the same status but another state.
        """
        with protocol_errors(self.redactor):
            validate_history_length(params)
            size = params.page_size if params.HasField("page_size") else DEFAULT_LIST_TASKS_PAGE_SIZE
            validate_page_size(size)
            tasks, following, total = await self._page(params, size)
            shown: list[types.Task] = []
            for task in tasks:
                view = await self.views.task(task, inline_bytes=0)
                if params.status in (types.TaskState.TASK_STATE_UNSPECIFIED, view.status.state):
                    shown.append(apply_history_length(view, params))
            return types.ListTasksResponse(tasks=shown, next_page_token=following, page_size=size, total_size=total)

    async def on_cancel_task(self, params: types.CancelTaskRequest, context: ServerCallContext) -> types.Task:
        """Cancel a task and all tasks below it."""
        with protocol_errors(self.redactor):
            validate_proto_required_fields(params)
            task = await self.desk.read(params.id)
            if state_of(task, ()) in ENDED:
                raise TaskNotCancelableError(f"task {task.task_id} has ended")
            await self.swarm.cancel(task, CANCEL_REASON)
            return await self.views.task(await self.desk.read(params.id))

    async def on_create_task_push_notification_config(
        self, params: types.TaskPushNotificationConfig, context: ServerCallContext
    ) -> Never:
        """Refuse: this server calls no addresses of clients."""
        raise PushNotificationNotSupportedError

    async def on_get_task_push_notification_config(
        self, params: types.GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> Never:
        """Refuse: there are none."""
        raise PushNotificationNotSupportedError

    async def on_list_task_push_notification_configs(
        self, params: types.ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> Never:
        """Refuse: there are none."""
        raise PushNotificationNotSupportedError

    async def on_delete_task_push_notification_config(
        self, params: types.DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> Never:
        """Refuse: there are none."""
        raise PushNotificationNotSupportedError

    async def on_get_extended_agent_card(
        self, params: types.GetExtendedAgentCardRequest, context: ServerCallContext
    ) -> Never:
        """Refuse: the card at the known address is the whole one."""
        raise UnsupportedOperationError("the agent has one card, at its well-known address")

    async def _deliver(self, params: types.SendMessageRequest) -> Task:
        validate_proto_required_fields(params)
        validate_history_length(params.configuration)
        if params.configuration.HasField("task_push_notification_config"):
            raise PushNotificationNotSupportedError
        return await self.desk.deliver(params.message)

    async def _stream(
        self, task: Task, context: ServerCallContext, history: types.SendMessageConfiguration
    ) -> AsyncGenerator[Event]:
        """Yield the task, then its changes; at its end its answer and files, and last its state."""
        shown: list[tuple[str, ...]] = []
        async with aclosing(self.streams.follow(task, context, blocking=False)) as changes:
            async for tree in changes:
                current, progress = _find(tree, task), _progress(tree)
                if not shown:
                    view = await self.views.task(current, tree)
                    yield apply_history_length(view, history)
                    status = view.status
                elif progress != shown:
                    status = await self.views.status(current, tree)
                    for artifact in await self.views.artifacts(current) if status.state in ENDED else ():
                        yield types.TaskArtifactUpdateEvent(
                            task_id=task.task_id, context_id=task.thread, artifact=artifact, last_chunk=True
                        )
                    yield types.TaskStatusUpdateEvent(task_id=task.task_id, context_id=task.thread, status=status)
                else:
                    continue
                shown = progress
                if status.state in RESTS:
                    return

    async def _page(self, params: types.ListTasksRequest, size: int) -> tuple[Sequence[Task], str, int]:
        """Return the tasks of a page, the token of the next page, and how many tasks there are with their status."""
        if params.context_id:
            tasks = await self.desk.conversation(params.context_id)
            return tasks[:size], "", len(tasks)
        status = STATUS_OF.get(params.status)
        after = params.status_timestamp_after
        since = after.ToDatetime(tzinfo=UTC) if params.HasField("status_timestamp_after") else None
        chosen = TaskFilters(status=status, role=self.desk.role, since=since, session=self.swarm.session)
        store = self.swarm.parts.store
        page = await read_task_page(store, self.redactor, chosen, size, params.page_token or None)
        session, counted = self.swarm.session, None if status is None else status.value
        total = await store.count(queries.created_by(CREATED_BY, self.desk.role, session, counted, MAX_COUNTED))
        return [task for task in page.items if self.desk.is_own(task)], page.next_cursor or "", total


def _find(tree: Sequence[Task], task: Task) -> Task:
    """Return a task as it is now; it is part of its own objective."""
    return next((each for each in tree if each.task_id == task.task_id), task)


def _progress(tree: Sequence[Task]) -> list[tuple[str, ...]]:
    """Return what a client is told about an objective: leases that are renewed are no news."""
    return sorted((task.task_id, task.status, str(task.status_reason), task.summary) for task in tree)
