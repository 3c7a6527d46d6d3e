"""Tasks and runs on the wire."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import AliasPath, field_validator

from fireswarm.api.models.base import MOMENT, AnyJson, Id, JsonMap, Page, RequestModel, ResponseModel, documented
from fireswarm.api.models.capabilities import UseSent, UseView, dump_uses
from fireswarm.contracts.swarm.run import RunStatus
from fireswarm.contracts.swarm.task import DEFAULT_MAX_ATTEMPTS, DEFAULT_PRIORITY, NO_DEADLINE, StatusReason, TaskStatus

TASK_ID, RUN_ID = "5f0c2f54-61d7-4b4e-9c39-6a6f35d2c7ab", "5f0c2f54-61d7-4b4e-9c39-6a6f35d2c7ab.1"


class ConstraintsIn(RequestModel):
    """Limits that travel with a task and hold where it acts."""

    demo_safe: bool = documented("only reading, and a skill's own scripts", False, default=False)
    read_only: bool = documented("nothing may be written", True, default=False)
    timeout_seconds: float | None = documented("longest turn, in seconds", 120, default=None, gt=0, le=86_400)


class LimitsOut(ResponseModel):
    """Limits that travel with a task."""

    demo_safe: bool = documented("only reading, and a skill's own scripts", False)
    read_only: bool = documented("nothing may be written", True)
    timeout_seconds: float | None = documented("longest turn, in seconds", 120, default=None)


class AttachmentIn(RequestModel):
    """An input by reference."""

    name: str = documented("file name", "sales.csv", min_length=1, max_length=255)
    mime: str = documented("media type", "text/csv", default="application/octet-stream", max_length=255)
    uri: str = documented("where it lies", "gs://bucket/sales.csv", min_length=1, max_length=2_000)


class TaskCreate(RequestModel):
    """An objective to work on. The same objective and context for the same role or agent is the same task."""

    objective: str = documented("what is wanted, in words", "Report on this folder", min_length=1, max_length=8_000)
    role: str | None = documented(
        "who takes it; the agent's role where one is named, else architect",
        "scout",
        default=None,
        pattern=r"^[a-z][a-z0-9-]{0,62}$",
    )
    agent_id: Id | None = documented(
        "a stored agent: the task gets its role, capabilities and system prompt", TASK_ID, default=None
    )
    skill: str | None = documented(
        "skill to use; chosen when left out", "noop", default=None, min_length=1, max_length=128
    )
    context: JsonMap = documented("what the task is about, free JSON", {"path": "/srv/docs"}, default_factory=dict)
    capabilities: tuple[UseSent, ...] = documented(
        "capabilities beside the role's, earlier ones first", ["current_time"], default=(), max_length=20
    )
    constraints: ConstraintsIn = documented("limits of the task", {"read_only": True}, default=ConstraintsIn())
    attachments: tuple[AttachmentIn, ...] = documented(
        "inputs by reference",
        [{"name": "sales.csv", "mime": "text/csv", "uri": "gs://bucket/sales.csv"}],
        default=(),
        max_length=50,
    )
    priority: int = documented("10 is most urgent", 5, default=DEFAULT_PRIORITY, ge=1, le=10)
    deadline: datetime | None = documented("blocks the task when it passes", "2027-01-01T00:00:00Z", default=None)
    max_attempts: int = documented(
        "failed attempts before it is given up", 5, default=DEFAULT_MAX_ATTEMPTS, ge=1, le=100
    )
    depends_on: tuple[Id, ...] = documented(
        "ids of tasks of this session to wait for", [TASK_ID], default=(), max_length=100
    )
    expected_outcome: str = documented("what would count as done", "one page of Markdown", default="", max_length=4_000)
    again: str = documented(
        "any word: makes the same objective new work", "second look", default="", max_length=100
    )  # fmt: skip

    @field_validator("deadline")
    @classmethod
    def _within_years(cls, value: datetime | None) -> datetime | None:
        if value is not None and not 2000 <= value.year <= 9000:
            raise ValueError("must lie between the years 2000 and 9000")
        return value


class CancelRequest(RequestModel):
    """Why a task is canceled."""

    reason: str = documented("kept on the task", "no longer wanted", default="by the operator", max_length=500)
    tree: bool = documented("cancel every task below it as well", True, default=False)


class AnswersRequest(RequestModel):
    """Answers to the questions of a blocked task."""

    answers: JsonMap = documented("a value for each question, by its name", {"path": "notes"})


class ArtifactOut(ResponseModel):
    """A piece of work that a task left."""

    type: str = documented("short word for its kind", "report")
    name: str = documented("its name", "report.md", default="")
    summary: str = documented("what it is, in a line", "What is in the folder", default="")
    value: AnyJson = documented("small content itself", {"files": 12}, default=None)
    uri: str | None = documented("where larger content lies", "file:///srv/.fireswarm/blobs/report.md", default=None)
    mime: str | None = documented("media type", "text/markdown", default=None)
    size_bytes: int | None = documented("size in bytes", 2048, default=None)
    sha256: str | None = documented("hash of the content", "9f86d081884c7d65", default=None)
    source_task_id: str | None = documented("task that made it", TASK_ID, default=None)


class SignalOut(ResponseModel):
    """Something that was noticed."""

    name: str = documented("what was noticed", "churn")
    strength: float = documented("from 0 to 1", 0.8)
    subject: str = documented("about what", "src/app.py", default="")
    note: str = documented("a remark", "changed 14 times in May", default="")


class QuestionOut(ResponseModel):
    """A question that a blocked task asks."""

    name: str = documented("key of the answer", "path")
    description: str = documented("what is asked", "Which folder?")
    type: str = documented("JSON type of the answer", "string", default="string")
    required: bool = documented("true when the task cannot go on without", True, default=True)


class ResultOut(ResponseModel):
    """What a finished task left."""

    summary: str = documented("the result in short", "12 files, 3 of them risky", default="")
    artifacts: tuple[ArtifactOut, ...] = documented("what was made", [], default=())
    signals: tuple[SignalOut, ...] = documented("what was noticed", [], default=())
    insights: tuple[str, ...] = documented("what was learned", ["tests are missing for src/app.py"], default=())
    confidence: float | None = documented("how sure the agent is, from 0 to 1", 0.7, default=None)
    next_recommended_actions: tuple[str, ...] = documented("what could be done next", ["add tests"], default=())


class LeaseOut(ResponseModel):
    """Who works on a task."""

    owner_agent_id: str = documented("the process that holds it", "scout-host-1a2b3c4d")
    expires_at: datetime = documented("until when, unless renewed", MOMENT)
    epoch: int = documented("grows with every claim", 1)


class TaskOut(ResponseModel):
    """A task as it stands."""

    task_id: str = documented("its id", TASK_ID)
    status: TaskStatus = documented("its status", "blocked")
    status_reason: StatusReason | None = documented("why it is blocked", "input_required", default=None)
    summary: str = documented("what is going on, in a line", "waits for an agent", default="")
    objective: str = documented("what is wanted", "Report on this folder")
    assigned_to: str = documented("role that takes it", "architect")
    for_agent: str | None = documented("stored agent that it is for", TASK_ID, default=None)
    session_hash: str = documented("its session", "default")
    created_by: str = documented("`api`, `operator`, or the role that planned it", "api", default="operator")
    parent_task_id: str | None = documented("task that planned it", TASK_ID, default=None)
    chain_id: str = documented(
        "root of its objective: what `/v1/events?task=` follows",
        TASK_ID,
        validation_alias=AliasPath("trace", "chain_id"),
    )
    plan_key: str = documented("its name in the plan", "inventory", default="")
    skill: str | None = documented("skill that was asked for", "noop", default=None)
    context: dict[str, Any] = documented("what it is about", {"path": "/srv/docs"}, default_factory=dict)
    constraints: LimitsOut = documented("its limits", {"demo_safe": False, "read_only": True})
    capabilities: tuple[UseView, ...] = documented("capabilities beside the role's", ["current_time"], default=())
    priority: int = documented("10 is most urgent", 5)
    deadline: datetime | None = documented(
        "when it is blocked, if it is not done", "2027-01-01T00:00:00Z", default=None
    )
    attempt: int = documented("attempts that failed or were lost", 0)
    max_attempts: int = documented("failed attempts before it is given up", 5)
    not_before: datetime | None = documented("when it is tried again", MOMENT, default=None)
    lease: LeaseOut | None = documented("who works on it", None, default=None)
    epoch: int = documented("how often it was claimed", 1)
    depends_on: tuple[str, ...] = documented("tasks it waits for", [TASK_ID], default=())
    waiting_on: int = documented("how many of them, and of its children, are not done", 0)
    children: tuple[str, ...] = documented("tasks it created", [TASK_ID], default=())
    questions: tuple[QuestionOut, ...] = documented("what it asks: `answer` supplies it", [], default=())
    answers: dict[str, Any] = documented("what it was answered", {"path": "notes"}, default_factory=dict)
    error: str | None = documented("what went wrong last", "SkillFailed: no such file", default=None)
    result: ResultOut | None = documented("what it left", None, default=None)
    created_at: datetime = documented("when it was submitted", MOMENT)
    updated_at: datetime = documented("when it changed last", MOMENT)
    ended_at: datetime | None = documented("when it ended", MOMENT, default=None)

    @field_validator("deadline", mode="before")
    @classmethod
    def _none_is_none(cls, value: datetime | None) -> datetime | None:
        return None if value is not None and value >= NO_DEADLINE else value

    @field_validator("capabilities", mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return dump_uses(value)


class TaskDetail(TaskOut):
    """A task with the reason why it does not move."""

    why: str = documented("what it waits for and what would move it", "It waits for a scout agent.", default="")


class TaskPage(Page):
    """Tasks, those that changed last first."""

    items: tuple[TaskOut, ...] = documented("the tasks of this page", [])


class CancelOut(ResponseModel):
    """What a cancel did."""

    canceled: tuple[str, ...] = documented("ids of the tasks that were canceled now", [TASK_ID])


class EventOut(ResponseModel):
    """Something that happened in a run."""

    ts: datetime = documented("when", MOMENT)
    type: str = documented("what: see docs/observability.md", "step_finished")
    payload: dict[str, Any] = documented("more about it", {"step": "skill:noop"}, default_factory=dict)


class RunOut(ResponseModel):
    """One lease epoch of a task: what one agent did on it."""

    run_id: str = documented("its id: the task's, a dot, and the epoch", RUN_ID)
    task_id: str = documented("the task", TASK_ID)
    chain_id: str = documented("root of the objective", TASK_ID, default="")
    agent_id: str = documented("the process that worked", "scout-host-1a2b3c4d")
    role: str = documented("its role", "scout")
    epoch: int = documented("which claim of the task", 1)
    status: RunStatus = documented("how far it is", "completed")
    summary: str = documented("how it ended, in a line", "nothing to do, done", default="")
    progress: float = documented("from 0 to 1", 1.0, default=0.0)
    error: str | None = documented("what went wrong", None, default=None)
    usage: dict[str, Any] = documented("what models cost", {"calls": 2, "usd": 0.01}, default_factory=dict)
    live: str = documented("the end of what a model says just now", "", default="")
    artifacts: tuple[ArtifactOut, ...] = documented("what was made", [], default=())
    events_total: int = documented("events so far, exact once the run has ended", 7, default=0)
    started_at: datetime = documented("when it began", MOMENT)
    ended_at: datetime | None = documented("when it ended", MOMENT, default=None)


class RunDetail(RunOut):
    """A run with its events."""

    events: tuple[EventOut, ...] = documented("its events in order, as many of the last as were asked for", [])
    events_left_out: int = documented("events before these", 0)


class RunPage(Page):
    """Runs, those that began last first."""

    items: tuple[RunOut, ...] = documented("the runs of this page", [])
