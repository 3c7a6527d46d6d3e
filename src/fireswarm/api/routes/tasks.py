"""``/v1/tasks``: submit, list, show, cancel, retry and answer tasks."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from fireswarm.api.models.capabilities import uses_of
from fireswarm.api.models.work import (
    AnswersRequest,
    CancelOut,
    CancelRequest,
    RetryRequest,
    SayRequest,
    TaskCreate,
    TaskDetail,
    TaskOut,
    TaskPage,
)
from fireswarm.api.paging import DEFAULT_LIMIT, Cursor, Limit, read_page
from fireswarm.api.session import ApiSession, CurrentSession, InPath
from fireswarm.contracts.swarm.agent import DEFAULT_ROLE
from fireswarm.contracts.swarm.task import TaskSpec, TaskStatus
from fireswarm.contracts.swarm.task_fields import make_spec
from fireswarm.errors import InvalidInput
from fireswarm.storage.documents.paths import TASKS
from fireswarm.storage.documents.read import parse_task_snapshot
from fireswarm.swarm.submission import stored_agents

router = APIRouter(prefix="/v1/tasks", tags=["tasks"])


@router.post(
    "",
    status_code=201,
    response_model=TaskOut,
    responses={200: {"model": TaskOut, "description": "The same work was already submitted; the existing task"}},
)
async def submit_task(given: CurrentSession, sent: TaskCreate, response: Response) -> Any:
    """Submit a task. 201 for a new task, 200 if the same objective and context were already submitted."""
    submitted = await given.swarm.submit(await _spec(given, sent))
    response.headers["Location"] = f"/v1/tasks/{submitted.task_id}"
    if not submitted.created:
        response.status_code = 200
    return TaskOut.model_validate(await given.swarm.get(submitted))


@router.get("", response_model=TaskPage)
async def list_tasks(
    given: CurrentSession,
    status: Annotated[TaskStatus | None, Query(description="filter by status", examples=["blocked"])] = None,
    role: Annotated[str | None, Query(max_length=63, description="filter by role", examples=["scout"])] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Any:
    """List tasks, most recently changed first. A task that changes while you page moves to the front."""
    filters = {"status": status, "assigned_to": role}
    page = await read_page(given.swarm, TASKS, "updated_at", parse_task_snapshot, limit=limit, cursor=cursor, **filters)
    return TaskPage.model_validate(page.fields())


@router.get("/{task_id}", response_model=TaskDetail)
async def get_task(given: CurrentSession, task_id: InPath) -> Any:
    """Show one task, and why it is stuck (`why`)."""
    task = await given.task(task_id)
    why = await given.swarm.explain(task)
    return TaskDetail.model_validate(task).model_copy(update={"why": why})


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
        objective=sent.objective,
        assigned_to=sent.role or DEFAULT_ROLE,
        session_hash=given.session,
        created_by="api",
        skill=sent.skill,
        model=sent.model,
        effort=sent.effort,
        fallback=sent.fallback,
        context=sent.context,
        constraints=sent.constraints.model_dump(),
        capabilities=uses_of(sent.capabilities),
        attachments=[item.model_dump() for item in sent.attachments],
        priority=sent.priority,
        deadline=sent.deadline,
        max_attempts=sent.max_attempts,
        depends_on=tuple(dict.fromkeys(sent.depends_on)),
        expected_outcome=sent.expected_outcome,
        checks=[item.model_dump() for item in sent.checks],
        max_revisions=sent.max_revisions,
        review_plan=sent.review_plan,
        fresh_key=sent.again,
    )
    if sent.agent_id is None:
        return spec
    agent = await stored_agents.get(given.swarm.parts.store, given.session, sent.agent_id)
    if sent.role not in (None, agent.role):
        raise InvalidInput(f"agent {agent.agent_id} has the role {agent.role}: omit role")
    return stored_agents.assign(agent, spec)
