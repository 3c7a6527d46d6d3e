"""API models of tasks and runs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import AliasPath, Field, field_validator

from fireswarm.api.models.base import MOMENT, AnyJson, Id, JsonMap, Page, RequestModel, ResponseModel, documented
from fireswarm.api.models.capabilities import UseSent, UseView, dump_uses, uses_of
from fireswarm.contracts.model_choice import MAX_FALLBACKS, Effort, ModelName
from fireswarm.contracts.swarm.run import RunStatus
from fireswarm.contracts.swarm.task import (
    DEFAULT_MAX_ATTEMPTS,
    DEFAULT_MAX_REVISIONS,
    DEFAULT_PRIORITY,
    NO_DEADLINE,
    StatusReason,
    TaskStatus,
)

TASK_ID, RUN_ID = "5f0c2f54-61d7-4b4e-9c39-6a6f35d2c7ab", "5f0c2f54-61d7-4b4e-9c39-6a6f35d2c7ab.1"


class ConstraintsIn(RequestModel):
    """Limits of a task, enforced by its worker."""

    demo_safe: bool = documented("allow only reads and the skill's bundled scripts", False, default=False, strict=True)
    read_only: bool = documented("forbid all writes", True, default=False, strict=True)
    timeout_seconds: float | None = documented(
        "maximum seconds of one call, and without progress", 120, default=None, gt=0, le=86_400, strict=True
    )


class LimitsOut(ResponseModel):
    """Limits of a task."""

    demo_safe: bool = documented("only reads and the skill's bundled scripts are allowed", False)
    read_only: bool = documented("all writes are forbidden", True)
    timeout_seconds: float | None = documented("maximum seconds of one call, and without progress", 120, default=None)


class AttachmentIn(RequestModel):
    """An input file given by URI."""

    name: str = documented("file name", "sales.csv", min_length=1, max_length=255)
    mime: str = documented("media type", "text/csv", default="application/octet-stream", max_length=255)
    uri: str = documented(
        "file of a bucket, or an address of the web",
        "gs://bucket/sales.csv",
        pattern=r"^(gs|https?)://.",
        max_length=2_000,
    )


class CheckIn(RequestModel):
    """A check of a task's work: a command, a JSON file with its schema, a skill with code, or a review by a role."""

    command: str = documented("shell command, run where the task works", "pytest -q", default="", max_length=4_000)
    file: str = documented("path of a JSON file", "$OUTPUT_DIR/data.json", default="", max_length=1_000)
    json_schema: JsonMap = documented("JSON Schema of the file's content", {"type": "object"}, default_factory=dict)
    skill: str = documented("skill with code that checks the work", "check-links", default="", max_length=64)
    input: JsonMap = documented("input of the skill", {"strict": True}, default_factory=dict)
    role: str = documented("role that reviews the work after all other checks", "predictor", default="", max_length=64)
    question: str = documented("what the role is to judge", "is every figure cited?", default="", max_length=4_000)


FallbackSent = Annotated[tuple[ModelName, ...], Field(max_length=MAX_FALLBACKS)] | ModelName
"""Models in their order; one name stands for a list."""


class Work(RequestModel):
    """What a task does: the fields that many tasks may share."""

    objective: str = documented(
        "objective in natural language", "Report on this folder", min_length=1, max_length=8_000
    )  # fmt: skip
    skill: str | None = documented(
        "skill to use; if omitted, the swarm chooses one", "noop", default=None, min_length=1, max_length=128
    )
    model: ModelName | None = documented(
        "model, as NAME or PROVIDER:NAME; default: the role's", "gemini:gemini-3.8-flash", default=None
    )
    effort: Effort | None = documented("how much the model thinks; default: the role's", "high", default=None)
    fallback: FallbackSent | None = documented(
        "models to ask while the model cannot be reached", ["anthropic:claude-haiku-4-5"], default=None
    )
    context: JsonMap = documented(
        "subject of the task as free JSON; `best_effort`: true asks for a report without a model",
        {"path": "/srv/docs"},
        default_factory=dict,
    )
    capabilities: tuple[UseSent, ...] = documented(
        "capabilities in addition to the role's, highest priority first", ["current_time"], default=(), max_length=20
    )
    constraints: ConstraintsIn = documented("limits of the task", {"read_only": True}, default=ConstraintsIn())
    attachments: tuple[AttachmentIn, ...] = documented(
        "input files given by URI",
        [{"name": "sales.csv", "mime": "text/csv", "uri": "gs://bucket/sales.csv"}],
        default=(),
        max_length=50,
    )
    priority: int = documented(
        "priority from 1 to 10; 10 is most urgent", 5, default=DEFAULT_PRIORITY, ge=1, le=10, strict=True
    )
    max_attempts: int = documented(
        "number of failed attempts after which the task is given up",
        5,
        default=DEFAULT_MAX_ATTEMPTS,
        ge=1,
        le=100,
        strict=True,
    )
    expected_outcome: str = documented("acceptance criterion", "one page of Markdown", default="", max_length=4_000)
    checks: tuple[CheckIn, ...] = documented(
        "checks that the work must pass before the task ends",
        [{"command": "pytest -q"}, {"role": "predictor", "question": "is every figure cited?"}],
        default=(),
        max_length=10,
    )
    max_revisions: int = documented(
        "how often work that fails a check is sent back", 3, default=DEFAULT_MAX_REVISIONS, ge=0, le=20, strict=True
    )
    review_plan: bool = documented("ask a person before a plan of this task runs", True, default=False, strict=True)

    def task_fields(self) -> dict[str, Any]:
        """Return the fields of a TaskSpec, without the role."""
        return {
            "objective": self.objective,
            "skill": self.skill,
            "model": self.model,
            "effort": self.effort,
            "fallback": self.fallback,
            "context": self.context,
            "constraints": self.constraints.model_dump(),
            "capabilities": uses_of(self.capabilities),
            "attachments": [item.model_dump() for item in self.attachments],
            "priority": self.priority,
            "max_attempts": self.max_attempts,
            "expected_outcome": self.expected_outcome,
            "checks": [item.model_dump() for item in self.checks],
            "max_revisions": self.max_revisions,
            "review_plan": self.review_plan,
        }


class TaskCreate(Work):
    """A task to submit. The same objective and context for the same role or agent give the same task."""

    role: str | None = documented(
        "role that executes the task; default: the agent's role if agent_id is given, otherwise architect",
        "scout",
        default=None,
        pattern=r"^[a-z][a-z0-9-]{0,62}$",
    )
    agent_id: Id | None = documented(
        "stored agent whose role, capabilities and system prompt the task gets", TASK_ID, default=None
    )
    deadline: datetime | None = documented(
        "time after which an unfinished task is blocked", "2027-01-01T00:00:00Z", default=None
    )
    depends_on: tuple[Id, ...] = documented(
        "ids of tasks of this session to wait for", [TASK_ID], default=(), max_length=100
    )
    again: str = documented(
        "any text; creates a new task for an objective that was already submitted",
        "second look",
        default="",
        max_length=100,
    )

    @field_validator("deadline")
    @classmethod
    def _within_years(cls, value: datetime | None) -> datetime | None:
        if value is not None and not 2000 <= value.year <= 9000:
            raise ValueError("must be between the years 2000 and 9000")
        return value


class CancelRequest(RequestModel):
    """Reason and extent of a cancel."""

    reason: str = documented(
        "reason, stored on the task", "no longer wanted", default="by the operator", max_length=500
    )  # fmt: skip
    tree: bool = documented("cancel all tasks below it as well", True, default=False)


class RetryRequest(RequestModel):
    """Decisions for the retry of a task."""

    redo: tuple[str, ...] = documented("uncertain steps to run again", ["skill:send-mail"], default=())
    skip: tuple[str, ...] = documented("uncertain steps to treat as done", [], default=())
    turns: int = documented("additional decisions for the task's model", 4, default=0, ge=0, le=100)


class AnswersRequest(RequestModel):
    """Answers to the questions of a blocked task. 409 for a question that is no longer open."""

    answers: JsonMap = documented("answers by question id", {"1-1": "notes"})


class SayRequest(RequestModel):
    """A message to the model of a task."""

    text: str = documented("what the model is to hear", "Compare the prices too", min_length=1, max_length=8_000)


class ArtifactOut(ResponseModel):
    """An artifact that a task produced."""

    type: str = documented("kind of artifact", "report")
    name: str = documented("artifact name", "report.md", default="")
    summary: str = documented("one-line description", "What is in the folder", default="")
    value: AnyJson = documented("content, if small", {"files": 12}, default=None)
    uri: str | None = documented("URI of larger content", "file:///srv/.fireswarm/blobs/report.md", default=None)
    mime: str | None = documented("media type", "text/markdown", default=None)
    size_bytes: int | None = documented("size in bytes", 2048, default=None)
    sha256: str | None = documented("SHA-256 of the content", "9f86d081884c7d65", default=None)
    source_task_id: str | None = documented("task that produced it", TASK_ID, default=None)


class SignalOut(ResponseModel):
    """An observation that a task reported."""

    name: str = documented("kind of observation", "churn")
    strength: float = documented("strength from 0 to 1", 0.8)
    subject: str = documented("subject of the observation, such as a file", "src/app.py", default="")
    note: str = documented("free-text remark", "changed 14 times in May", default="")


class QuestionOut(ResponseModel):
    """A question of a blocked task."""

    id: str = documented("key of the answer; no two questions of a task share one", "1-1", validation_alias="key")
    name: str = documented("name of the missing input", "path")
    description: str = documented("text of the question", "Which folder?")
    type: str = documented("JSON type of the answer", "string", default="string")
    required: bool = documented("true if the task cannot continue without an answer", True, default=True)
    choices: tuple[AnyJson, ...] = documented("the allowed values; empty if others are allowed", ["a", "b"], default=())
    allowed: dict[str, Any] = documented(
        "JSON Schema that the answer must satisfy", {"enum": ["a", "b"]}, default_factory=dict
    )


class ResultOut(ResponseModel):
    """Result of a finished task."""

    summary: str = documented("short description of the result", "12 files, 3 of them risky", default="")
    artifacts: tuple[ArtifactOut, ...] = documented("artifacts that the task produced", [], default=())
    signals: tuple[SignalOut, ...] = documented("observations that the task reported", [], default=())
    insights: tuple[str, ...] = documented("conclusions", ["tests are missing for src/app.py"], default=())
    confidence: float | None = documented("confidence of the agent from 0 to 1", 0.7, default=None)
    next_recommended_actions: tuple[str, ...] = documented("suggested next actions", ["add tests"], default=())


class LeaseOut(ResponseModel):
    """The lease of the worker that executes a task."""

    owner_agent_id: str = documented("process that holds the lease", "scout-host-1a2b3c4d")
    expires_at: datetime = documented("expiry time, unless renewed", MOMENT)
    epoch: int = documented("fencing token, incremented by each claim", 1)


class TaskOut(ResponseModel):
    """A task in its current state."""

    task_id: str = documented("task id", TASK_ID)
    status: TaskStatus = documented("current status", "blocked")
    status_reason: StatusReason | None = documented("reason for the block", "input_required", default=None)
    summary: str = documented("one-line description of the current state", "waits for an agent", default="")
    objective: str = documented("objective in natural language", "Report on this folder")
    assigned_to: str = documented("role that executes the task", "architect")
    for_agent: str | None = documented("id of the stored agent, if submitted for one", TASK_ID, default=None)
    session_hash: str = documented("session of the task", "default")
    created_by: str = documented("`api`, `operator`, or the role that planned it", "api", default="operator")
    parent_task_id: str | None = documented("task that planned it", TASK_ID, default=None)
    chain_id: str = documented(
        "id of the objective's root task; `/v1/events?task=` follows all tasks with this id",
        TASK_ID,
        validation_alias=AliasPath("trace", "chain_id"),
    )
    plan_key: str = documented("name in the plan that created it", "inventory", default="")
    skill: str | None = documented("requested skill", "noop", default=None)
    model: str | None = documented("model that was chosen for it", "gemini:gemini-3.8-flash", default=None)
    effort: str | None = documented("effort that was chosen for it", "high", default=None)
    fallback: tuple[str, ...] | None = documented(
        "models to ask while its model cannot be reached", ["anthropic:claude-haiku-4-5"], default=None
    )
    context: dict[str, Any] = documented(
        "subject of the task as free JSON", {"path": "/srv/docs"}, default_factory=dict
    )
    constraints: LimitsOut = documented("limits of the task", {"demo_safe": False, "read_only": True})
    capabilities: tuple[UseView, ...] = documented(
        "capabilities in addition to the role's", ["current_time"], default=()
    )  # fmt: skip
    priority: int = documented("priority from 1 to 10; 10 is most urgent", 5)
    deadline: datetime | None = documented(
        "time after which the unfinished task is blocked", "2027-01-01T00:00:00Z", default=None
    )
    attempt: int = documented("number of failed or lost attempts", 0)
    max_attempts: int = documented("number of failed attempts after which the task is given up", 5)
    not_before: datetime | None = documented("earliest time of the next attempt", MOMENT, default=None)
    lease: LeaseOut | None = documented("lease of the worker that executes it; null if not claimed", None, default=None)
    epoch: int = documented("number of claims so far", 1)
    depends_on: tuple[str, ...] = documented("ids of the tasks it waits for", [TASK_ID], default=())
    waiting_on: int = documented("number of its dependencies and children that are not done; above 8 an upper bound", 0)
    children: tuple[str, ...] = documented("ids of the tasks it created", [TASK_ID], default=())
    questions: tuple[QuestionOut, ...] = documented("open questions; answer them with `answer`", [], default=())
    answers: dict[str, Any] = documented(
        "answers given so far, by question name", {"path": "notes"}, default_factory=dict
    )
    error: str | None = documented("latest error", "SkillFailed: no such file", default=None)
    result: ResultOut | None = documented("result, once finished", None, default=None)
    created_at: datetime = documented("time of submission", MOMENT)
    updated_at: datetime = documented("time of the last change", MOMENT)
    ended_at: datetime | None = documented("time of the end", MOMENT, default=None)

    @field_validator("deadline", mode="before")
    @classmethod
    def _none_is_none(cls, value: datetime | None) -> datetime | None:
        return None if value is not None and value >= NO_DEADLINE else value

    @field_validator("capabilities", mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return dump_uses(value)


class TaskDetail(TaskOut):
    """A task with the reason why it is stuck."""

    why: str = documented("what it waits for and how to continue it", "It waits for a scout agent.", default="")


class TaskPage(Page):
    """Tasks, most recently changed first."""

    items: tuple[TaskOut, ...] = documented("tasks of this page", [])


class TaskList(ResponseModel):
    """The tasks of an objective."""

    items: tuple[TaskOut, ...] = documented("tasks of the objective, the first one first", [])
    total: int = documented("number of items", 3)


class CancelOut(ResponseModel):
    """Result of a cancel."""

    canceled: tuple[str, ...] = documented("ids of the tasks canceled by this request", [TASK_ID])


class EventOut(ResponseModel):
    """An event of a run."""

    ts: datetime = documented("time of the event", MOMENT)
    type: str = documented("event type; docs/reference/observability.md lists them", "step_finished")
    payload: dict[str, Any] = documented("details of the event", {"step": "skill:noop"}, default_factory=dict)


class RunOut(ResponseModel):
    """The work of one agent on a task during one lease epoch."""

    run_id: str = documented("run id: task id, dot, epoch", RUN_ID)
    task_id: str = documented("task of the run", TASK_ID)
    chain_id: str = documented("id of the objective's root task", TASK_ID, default="")
    agent_id: str = documented("process that executed the run", "scout-host-1a2b3c4d")
    role: str = documented("role of the process", "scout")
    epoch: int = documented("lease epoch of the run", 1)
    status: RunStatus = documented("status of the run", "completed")
    summary: str = documented("one-line description of the result", "nothing to do, done", default="")
    progress: float = documented("progress from 0 to 1", 1.0, default=0.0)
    error: str | None = documented("error, if the run failed", None, default=None)
    usage: dict[str, Any] = documented("model usage and cost", {"calls": 2, "usd": 0.01}, default_factory=dict)
    live: str = documented("end of the text that the model is streaming", "", default="")
    artifacts: tuple[ArtifactOut, ...] = documented("artifacts that the run produced", [], default=())
    events_total: int = documented("number of events so far; exact once the run has ended", 7, default=0)
    started_at: datetime = documented("start time", MOMENT)
    ended_at: datetime | None = documented(
        "end time; of a run that was lost, the last time at which its agent is known to have worked",
        MOMENT,
        default=None,
    )


class RunDetail(RunOut):
    """A run with its events."""

    events: tuple[EventOut, ...] = documented("latest events in order, up to the requested number", [])
    events_left_out: int = documented("number of earlier events that are not included", 0)


class RunPage(Page):
    """Runs, most recently started first."""

    items: tuple[RunOut, ...] = documented("runs of this page", [])
