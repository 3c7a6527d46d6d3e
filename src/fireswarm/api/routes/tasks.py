"""``/v1/tasks``: submit, list, show, cancel, retry and answer tasks."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from fireswarm.api.models.base import MOMENT
from fireswarm.api.models.work import (
    AnswersRequest,
    CancelOut,
    CancelRequest,
    RetryRequest,
    SayRequest,
    TaskCreate,
    TaskDetail,
    TaskList,
    TaskOut,
    TaskPage,
)
from fireswarm.api.paging import DEFAULT_LIMIT, Cursor, Limit
from fireswarm.api.reading.long_poll import Wait, wait_for_change, wait_for_end, waiting
from fireswarm.api.reading.task_pages import Moment, TaskFilters, read_task_page
from fireswarm.api.session import ApiSession, CurrentSession, InPath
from fireswarm.contracts.swarm.agent import DEFAULT_ROLE
from fireswarm.contracts.swarm.task import StatusReason, TaskSpec, TaskStatus
from fireswarm.contracts.swarm.task_fields import make_spec
from fireswarm.errors import InvalidInput
from fireswarm.swarm.submission import stored_agents

router = APIRouter(prefix="/v1/tasks", tags=["tasks"])


@router.post(
    "",
    status_code=201,
    response_model=TaskOut,
    responses={200: {"model": TaskOut, "description": "The same work was already submitted; the existing task"}},
)
async def submit_task(
    given: CurrentSession, sent: TaskCreate, request: Request, response: Response, wait: Wait = 0
) -> Any:
    """Submit a task. 201 for a new task, 200 if the same objective and context were already submitted."""
    with waiting(given, request, wait):
        submitted = await given.swarm.submit(await _spec(given, sent))
        if wait:
            await wait_for_end(given, request, submitted, wait)
    response.headers["Location"] = f"/v1/tasks/{submitted.task_id}"
    if not submitted.created:
        response.status_code = 200
    return TaskOut.model_validate(await given.swarm.get(submitted))


@router.get("", response_model=TaskPage)
async def list_tasks(
    given: CurrentSession,
    status: Annotated[TaskStatus | None, Query(description="filter by status", examples=["blocked"])] = None,
    reason: Annotated[
        StatusReason | None, Query(description="filter by the reason of a block", examples=["input_required"])
    ] = None,
    role: Annotated[str | None, Query(max_length=63, description="filter by role", examples=["scout"])] = None,
    since: Annotated[Moment | None, Query(description="last change at this time or later", examples=[MOMENT])] = None,
    until: Annotated[Moment | None, Query(description="last change before this time", examples=[MOMENT])] = None,
    text: Annotated[
        str,
        Query(
            max_length=200,
            description="words of the objective, in any case and order; one request looks at 500 tasks",
            examples=["sales report"],
        ),
    ] = "",
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Any:
    """List tasks, most recently changed first. A task that changes while you page moves to the front."""
    chosen = TaskFilters(status, reason, role, since, until, text, given.session)
    return TaskPage.model_validate(
        (await read_task_page(given.swarm.parts.store, given.redactor, chosen, limit, cursor)).fields()
    )


@router.get("/{task_id}", response_model=TaskDetail)
async def get_task(given: CurrentSession, task_id: InPath, request: Request, wait: Wait = 0) -> Any:
    """Show one task, and why it is stuck (`why`). With `wait` and `If-None-Match`, wait until the task has changed."""

    async def render() -> Response:
        task = await given.task(task_id)
        detail = TaskDetail.model_validate(task).model_copy(update={"why": await given.swarm.explain(task)})
        return request.app.state.json_response(detail.model_dump(mode="json"))

    if wait:
        task = await given.task(task_id)
        with waiting(given, request, wait):
            if "if-none-match" in request.headers:
                await wait_for_change(given, request, task, wait, render)
            else:
                await wait_for_end(given, request, task, wait)
    return await render()


@router.get("/{task_id}/objective", response_model=TaskList)
async def get_objective(given: CurrentSession, task_id: InPath) -> Any:
    """List all tasks of a task's objective: parents before the tasks they planned, then by dependencies. Not paged."""
    tasks = await given.swarm.objective(await given.task(task_id))
    items = tuple(TaskOut.model_validate(task) for task in tasks if task.session_hash == given.session)
    return TaskList(items=items, total=len(items))


@router.post("/{task_id}/cancel", response_model=CancelOut)
async def cancel_task(given: CurrentSession, task_id: InPath, sent: CancelRequest | None = None) -> Any:
    """Cancel a task, and with `tree` all tasks below it. Running work stops within two seconds."""
    task = await given.task(task_id)
    cancel = sent or CancelRequest()
    return CancelOut(canceled=tuple(await given.swarm.cancel(task, cancel.reason, tree=cancel.tree)))


@router.post("/{task_id}/retry", response_model=TaskOut)
async def retry_task(given: CurrentSession, task_id: InPath, sent: RetryRequest | None = None) -> Any:
    """Requeue a failed or paused task. An unusable model answer is requested again."""
    task = await given.task(task_id)
    retry = sent or RetryRequest()
    queued = await given.swarm.retry(task, redo=retry.redo, skip=retry.skip, turns=retry.turns)
    return TaskOut.model_validate(queued)


@router.post("/{task_id}/answer", response_model=TaskOut)
async def answer_task(given: CurrentSession, task_id: InPath, sent: AnswersRequest) -> Any:
    """Answer the open questions of a blocked task, by their ids. The task is queued again immediately."""
    await given.task(task_id)
    return TaskOut.model_validate(await given.swarm.answer(task_id, sent.answers, by_id=True))


@router.post("/{task_id}/say", response_model=TaskOut)
async def say_to_task(given: CurrentSession, task_id: InPath, sent: SayRequest) -> Any:
    """Say something to a task's model. A finished objective goes on as a new task, which is returned."""
    await given.task(task_id)
    return TaskOut.model_validate(await given.swarm.say(task_id, sent.text))


async def _spec(given: ApiSession, sent: TaskCreate) -> TaskSpec:
    """Build the TaskSpec of a request. Raises InvalidInput if it is invalid or does not fit its agent."""
    spec = make_spec(
        **sent.task_fields(),
        assigned_to=sent.role or DEFAULT_ROLE,
        session_hash=given.session,
        created_by="api",
        deadline=sent.deadline,
        depends_on=tuple(dict.fromkeys(sent.depends_on)),
        fresh_key=sent.again,
    )
    if sent.agent_id is None:
        return spec
    agent = await stored_agents.get(given.swarm.parts.store, given.session, sent.agent_id)
    if sent.role not in (None, agent.role):
        raise InvalidInput(f"agent {agent.agent_id} has the role {agent.role}: omit role")
    return stored_agents.assign(agent, spec)
