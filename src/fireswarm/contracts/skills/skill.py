"""The request and the result of a skill.

A skill with code is a plain synchronous function in its folder::

    # skills/<name>/scripts/skill.py
    def run(request: SkillRequest) -> SkillResult: ...

It runs in a separate process, off the event loop. It reads only the contents of the request (and the files of its
objective), writes files only below ``request.workdir``, and returns one result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Self, cast

from pydantic import AfterValidator, Field, model_validator

from fireswarm.contracts.base import (
    Contract,
    DocumentId,
    Json,
    JsonObject,
    RoleName,
    Timestamp,
    check_no_own_name,
    check_not_blank,
)
from fireswarm.contracts.limits import MAX_OBJECTIVE_CHARS, MAX_RESULT_SUMMARY_CHARS, truncate
from fireswarm.contracts.model_choice import ModelChoice
from fireswarm.contracts.skills.advice import Advice, AdviceRequest
from fireswarm.contracts.skills.artifact import Artifact, Attachment, Confidence, Signal
from fireswarm.contracts.skills.capability import CapabilityId
from fireswarm.contracts.skills.conversation import ConversationEvent, ConversationView, InputField, PocketFact
from fireswarm.contracts.skills.limits import BackboneSettings
from fireswarm.contracts.skills.permissions import ADVISE, APPROVE, Approval


class Fact(Contract):
    """A fact that outlives its task: one value by ``bucket`` and ``key`` in a session.

    ``keywords`` are further words by which recall finds it; ``source`` is the task, artifact or person from which the
    fact came, ``evidence`` where it can be checked: a file and line, a URL, a quote. ``replaces`` is the id, or
    ``bucket/key``, of an older fact that is no longer true. ``fact_id`` is the id of its document, set on reading.
    """

    bucket: str = Field(min_length=1, max_length=100)
    key: str = Field(min_length=1, max_length=255)
    value: Json
    keywords: tuple[str, ...] = Field(default=(), max_length=40)
    source: str = ""
    evidence: tuple[str, ...] = Field(default=(), max_length=40)
    replaces: str = ""
    confidence: Confidence = 1.0
    learned_at: Timestamp | None = None
    fact_id: str = ""


DEFAULT_MAX_REVISIONS = 3
"""Number of times that work whose checks fail goes back to its author."""

QUESTION_ID = re.compile(r"[0-9]{1,9}-[0-9]{1,4}")
"""Id of a question: number of the turn that asked, and number within the turn.

Names of questions never have this form.
"""


MAX_SHOWN_CHOICES = 40

NEEDS_MODEL = "This objective needs a model"
"""Prefix of the summary of a refused objective. The requirements follow after a semicolon."""


class Question(InputField):
    """One missing input. A blocked task holds its questions until they are answered.

    A skill decides the fields of an `InputField` only; fireswarm sets the others, and drops them from what a skill
    returns. ``id`` is set when the question is asked; no two questions of a task share one. ``step`` is the step of a
    run that asked, and whose repetition gets the answer; "" if the whole turn asked. ``approval`` is the action to
    approve, for a question for approval.
    """

    id: str = Field(default="", pattern=r"^([0-9]{1,9}-[0-9]{1,4})?$")
    step: str = Field(default="", max_length=300)
    approval: Approval | None = None

    @property
    def key(self) -> str:
        """Id of the question, or its name if a person wrote it without an id."""
        return self.id or self.name

    @property
    def choices(self) -> tuple[Any, ...]:
        """The allowed values, if ``allowed`` lists them."""
        if "const" in self.allowed:
            return (self.allowed["const"],)
        listed = self.allowed.get("enum")
        return tuple(cast("list[Any]", listed)) if isinstance(listed, list) else ()

    @property
    def options(self) -> tuple[Any, ...]:
        """The choices, or the suggestions of a question that takes any other answer too."""
        suggested = self.allowed.get("examples")
        return self.choices or (tuple(cast("list[Any]", suggested)) if isinstance(suggested, list) else ())

    @property
    def shown_choices(self) -> str:
        """The options in words; only the first ones if there are many."""
        more = len(self.options) - MAX_SHOWN_CHOICES
        shown = ", ".join(str(choice) for choice in self.options[:MAX_SHOWN_CHOICES])
        return f"{shown} and {more:,} more" if more > 0 else shown


def choice_of(question: Question, said: str) -> str | None:
    """Return the question's choice that *said* names, or None if none or several match.

    It is named by its text, ignoring case, by its number from 1, or by a beginning or a part that no other choice has.
    If the question only has suggestions, any other text is an answer.
    """
    if not question.options:
        return said
    choices, wanted = [str(choice) for choice in question.options], said.strip().casefold()
    if said in choices:
        return said
    folded = [choice.casefold() for choice in choices]
    matches = [[at for at, choice in enumerate(folded) if choice == wanted]]
    if wanted.isdecimal():
        has_numbers = any(choice.strip().isdecimal() for choice in choices)
        matches.append([int(wanted) - 1] if 1 <= int(wanted) <= len(choices) and not has_numbers else [])
    elif wanted and question.choices:
        matches.append([at for at, choice in enumerate(folded) if choice.startswith(wanted)])
        matches.append([at for at, choice in enumerate(folded) if wanted in choice])
    named = next((found for found in matches if found), [])
    if len(named) == 1:
        return choices[named[0]]
    return said if not question.choices and not named else None


def asks_a_person(questions: Iterable[Question]) -> bool:
    """Return True if only a person may answer one of the questions: one by fireswarm itself, for approval or advice."""
    steps = (f"{APPROVE}/", f"{ADVISE}/")
    return any(question.approval is not None or question.step.startswith(steps) for question in questions)


class Reply(Contract):
    """Answers to another task of the session, by the names or ids of its questions."""

    task_id: DocumentId
    answers: JsonObject = Field(min_length=1)


class Check(Contract):
    """A check that a task must pass before it ends: a command, a JSON file, a skill with code, or a review by a role.

    A skill passes if it completes without a signal of strength 0, a review if its signal ``review`` is not 0.
    """

    command: str = Field(default="", max_length=4_000, description="shell command, run where the task works")
    file: str = Field(default="", max_length=1_000, description="path of a JSON file, such as $OUTPUT_DIR/data.json")
    json_schema: JsonObject = Field(default_factory=dict, description="JSON Schema of the file's content")
    skill: str = Field(default="", max_length=64, description="name of a skill with code that checks the work")
    input: JsonObject = Field(default_factory=dict, description="input of the skill")
    role: str = Field(default="", max_length=64, description="role that reviews the work when all other checks pass")
    question: str = Field(default="", max_length=4_000, description="what the role is to judge")

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = (self.command, self.file, self.skill, self.role)
        if sum(bool(kind.strip()) for kind in kinds) != 1 or bool(self.role) != bool(self.question.strip()):
            raise ValueError("a check has one of: command; file with json_schema; skill with input; role with question")
        return self

    def __str__(self) -> str:
        """Return what is checked, in few words."""
        if self.role:
            return f"{self.role}: {self.question}"
        return self.command or self.file or f"skill {self.skill}"


CALL_KEY = "call."
"""Begins the key of a task whose result is the output of a call."""

REVIEW, REVIEW_MARK = "review", ".review"
"""The signal with the verdict of a review, and a part of the key of its task."""


class PlannedTask(ModelChoice):
    """A task to create. ``key`` names it within the plan; ``depends_on`` lists keys of the same plan.

    ``capabilities`` are only ids, of capabilities that the role has or offers to plans. ``checks`` run before a model's
    task ends; if one fails, the work goes back to its conversation, at most ``max_revisions`` times.
    """

    key: Annotated[str, AfterValidator(check_no_own_name)] = Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")
    assigned_to: RoleName
    objective: Annotated[str, AfterValidator(check_not_blank)] = Field(min_length=1, max_length=MAX_OBJECTIVE_CHARS)
    skill: str | None = None
    context: JsonObject = Field(default_factory=dict)
    constraints: JsonObject = Field(default_factory=dict)
    capabilities: tuple[CapabilityId, ...] = Field(default=(), max_length=20)
    depends_on: tuple[str, ...] = ()
    priority: int | None = Field(default=None, ge=1, le=10)
    deadline: Timestamp | None = None
    max_attempts: int | None = Field(default=None, ge=1, le=100)
    handoff_reason: str = ""
    expected_outcome: str = ""
    checks: tuple[Check, ...] = Field(default=(), max_length=10)
    max_revisions: int = Field(default=DEFAULT_MAX_REVISIONS, ge=0, le=20)


class ChildResult(Contract):
    """Result of a task that this task waited for, for the resumed skill."""

    task_id: str
    key: str = ""
    assigned_to: str
    objective: str
    status: str
    summary: str = ""
    artifacts: tuple[Artifact, ...] = ()
    signals: tuple[Signal, ...] = ()
    insights: tuple[str, ...] = ()
    confidence: Confidence | None = None


class SkillRequest(Contract):
    """All inputs of a skill.

    ``artifacts`` and ``signals`` come from finished dependencies and from envelopes, with values loaded; ``children``
    are the results of tasks that an earlier turn of this task created (empty on the first turn); ``facts`` were
    recalled from memory; ``answers`` are an operator's answers to earlier questions. ``roles`` lists the roles of this
    swarm. ``now`` is the server's time. ``conversation`` is the state of earlier turns, if the skill's SKILL.md
    declares a conversation. ``limits`` and ``advice`` are for a skill with an execution mode: its limits, and the
    advisor's answers so far, in the order of the questions. ``epoch`` is the fencing token of the task's lease: another
    system can refuse what an older one sends. ``attempt`` counts the failed attempts before this one. ``deadline`` is
    the server's time at which the turn is cut off, by the limits of the role and the task or by the task's deadline.
    """

    task_id: str
    session_hash: str
    objective: str
    role: RoleName
    context: JsonObject = Field(default_factory=dict)
    constraints: JsonObject = Field(default_factory=dict)
    expected_outcome: str = ""
    attachments: tuple[Attachment, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    signals: tuple[Signal, ...] = ()
    children: tuple[ChildResult, ...] = ()
    facts: tuple[Fact, ...] = ()
    answers: JsonObject = Field(default_factory=dict)
    roles: tuple[str, ...] = ()
    conversation: ConversationView | None = None
    limits: BackboneSettings = BackboneSettings()
    advice: tuple[Advice, ...] = ()
    epoch: int = 0
    attempt: int = 0
    deadline: Timestamp | None = None
    workdir: Path
    now: Timestamp


class SkillState(StrEnum):
    """Final state of a skill's turn."""

    COMPLETED = "completed"
    INPUT_REQUIRED = "input_required"
    DELEGATING = "delegating"
    PAUSED = "paused"
    ADVICE_REQUIRED = "advice_required"
    FAILED = "failed"


class SkillResult(Contract):
    """Result of a skill's turn.

    ``completed``: the artifacts, insights and facts are the result. ``delegating``: ``tasks`` are created, and the
    skill runs again with their results as ``children``. ``input_required``: the operator gets ``questions``.
    ``paused``: the skill runs again after ``pause_seconds``, or on ``swarm retry``. ``advice_required``: the advisor
    gets ``asks``, and the skill runs again with the answer in ``advice``. ``failed``: ``summary`` has the reason;
    ``retryable`` if another attempt can help, ``escalated`` if it needs review, ``needs_model`` if only a model can do
    the work, ``needs_confinement`` if it runs code that cannot be confined on this machine. ``pocket`` and ``log`` are
    for the next turns of the same skill; ``facts`` are for the session. ``replies`` answer other tasks by messages that
    are sent with the result, if the mailbox policy allows that.

    For an artifact that is a file in the request's ``workdir``, set ``uri`` to
    ``workdir:<relative path>``; the file is moved to the blob store before the result is committed.
    """

    state: SkillState = SkillState.COMPLETED
    summary: str = Field(max_length=MAX_RESULT_SUMMARY_CHARS)
    artifacts: tuple[Artifact, ...] = ()
    signals: tuple[Signal, ...] = ()
    insights: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    confidence: Confidence | None = None
    next_recommended_actions: tuple[str, ...] = ()
    tasks: tuple[PlannedTask, ...] = ()
    questions: tuple[Question, ...] = ()
    replies: tuple[Reply, ...] = Field(default=(), max_length=20)
    pocket: tuple[PocketFact, ...] = Field(default=(), max_length=100)
    log: tuple[ConversationEvent, ...] = Field(default=(), max_length=40)
    pause_seconds: float | None = Field(default=None, gt=0)
    asks: AdviceRequest | None = None
    retryable: bool = False
    escalated: bool = False
    needs_model: bool = False
    needs_confinement: bool = False

    @property
    def has_parts(self) -> bool:
        """True if it has more than words: artifacts, facts, tasks or questions."""
        return bool(self.artifacts or self.facts or self.tasks or self.questions)

    @classmethod
    def failure(
        cls, reason: str, *, retryable: bool = False, escalated: bool = False, needs_model: bool = False
    ) -> Self:
        """Build a failed result. *reason* becomes the summary, shortened to its limit."""
        summary = truncate(reason, MAX_RESULT_SUMMARY_CHARS)
        return cls(
            state=SkillState.FAILED,
            summary=summary,
            retryable=retryable,
            escalated=escalated,
            needs_model=needs_model,
        )
