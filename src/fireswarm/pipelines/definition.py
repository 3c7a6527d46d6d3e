"""The contract of a pipeline's file, ``pipelines/NAME.yaml``: its steps, its loops and its limits. Pure.

``docs/how-to/pipelines.md`` explains each field.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Annotated, Any, Self

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from fireswarm.contracts.base import Contract, Json, JsonObject, RoleName, check_no_own_name
from fireswarm.contracts.skills.advice import ExecutionMode
from fireswarm.contracts.skills.limits import MAX_CHANGED_FILES, MAX_FIX_ITERATIONS, MAX_STEPS, BackboneSettings

StepId = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$", max_length=60), AfterValidator(check_no_own_name)
]
"""The id of a step: the key of its task, and its name for `--from`."""

FAULTS = "pipeline_faults"
"""Type of the error of fields that do not fit together. Its context has ``faults``: the keys of a field, and why."""

SUFFIX = "-pipeline"
"""The pipeline NAME is the skill NAME-pipeline of a task: it plans the steps."""


class StepCondition(Contract):
    """A condition on the files of a run: a value in a JSON file, or a registered function.

    ``at`` is the key of the value, with dots for inner keys. The condition ``holds`` is a name in `CONDITIONS`.
    """

    file: str = ""
    at: str = ""
    equals: Json = None
    holds: str = ""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if bool(self.file) == bool(self.holds):
            raise ValueError("a condition has `file`, `at` and `equals`, or it has `holds`")
        return self

    def __str__(self) -> str:
        """Return the condition in words."""
        return self.holds or f"{self.at or 'the content'} of {self.file} is {json.dumps(self.equals)}"


class Loop(Contract):
    """A step that is repeated. Until the condition holds, it is planned, and the steps ``again`` after it.

    This is done at most ``most`` times; then the step ``else`` ends the run, which needs review. ``because`` says in
    words what does not hold.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, serialize_by_alias=True)

    until: StepCondition
    most: int = Field(default=MAX_FIX_ITERATIONS, ge=1, le=MAX_FIX_ITERATIONS)
    again: tuple[StepId, ...] = Field(default=(), max_length=10)
    otherwise: str = Field(default="", alias="else")
    because: str = ""


class PipelineStep(Contract):
    """One step: a task with a skill. Missing values: the skill is named like the step, ``needs`` is the step before.

    ``reads`` are the keys of the objective's context that the step gets; ``leaves`` the files, or folders with a slash,
    that it must pass on; ``gates`` names in `GATES`; ``scope`` path patterns of the project's files that it may change.
    ``advice`` is a file beside the pipeline's with the JSON Schema of what an advisor answers, read into
    ``answer_schema``, which no file sets itself.
    It is left out unless all conditions of ``when`` hold.
    """

    id: StepId
    skill: str = Field(default="", max_length=64)
    role: RoleName = "executor"
    mode: ExecutionMode | None = None
    needs: tuple[StepId, ...] | None = None
    reads: tuple[str, ...] = ()
    leaves: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()
    scope: tuple[str, ...] = ()
    advice: str = Field(default="", max_length=400)
    answer_schema: JsonObject = Field(default_factory=dict, exclude=True)
    when: tuple[StepCondition, ...] = ()
    loop: Loop | None = None

    @property
    def skill_name(self) -> str:
        """The skill of the step."""
        return self.skill or self.id


class PipelineLimits(Contract):
    """Limits of a whole run: tasks, repetitions of loops, and files of the project. They can only be lowered."""

    steps: int = Field(default=MAX_STEPS, ge=1, le=MAX_STEPS)
    fixes: int = Field(default=MAX_FIX_ITERATIONS, ge=0, le=MAX_FIX_ITERATIONS)
    files: int = Field(default=MAX_CHANGED_FILES, ge=1, le=MAX_CHANGED_FILES)

    def lower(self, settings: BackboneSettings) -> BackboneSettings:
        """Return the operator's limits, lowered to these."""
        return settings.model_copy(
            update={
                "max_steps": min(settings.max_steps, self.steps),
                "fix_loop_max": min(settings.fix_loop_max, self.fixes),
                "max_changed_files": min(settings.max_changed_files, self.files),
            }
        )


class Pipeline(Contract):
    """A pipeline. ``inputs`` maps keys of the context that a run needs to the question for a person if one is missing.

    ``role`` plans the steps, without a model. ``tags`` are words by which a planner finds the pipeline.
    """

    description: str = Field(min_length=1, max_length=1_024)
    version: str = "1.0.0"
    tags: str = ""
    role: RoleName = "architect"
    inputs: dict[str, str] = Field(default_factory=dict, max_length=20)
    steps: tuple[PipelineStep, ...] = Field(min_length=1, max_length=MAX_STEPS)
    limits: PipelineLimits = PipelineLimits()

    @property
    def by_id(self) -> Mapping[str, PipelineStep]:
        """Steps by id."""
        return {step.id: step for step in self.steps}

    @property
    def in_order(self) -> tuple[PipelineStep, ...]:
        """The steps of a run that needs no review, in the order of the file."""
        ends = {step.loop.otherwise for step in self.steps if step.loop is not None}
        return tuple(step for step in self.steps if step.id not in ends)

    def needs_of(self, step: PipelineStep) -> tuple[str, ...]:
        """Return the ids of the steps that a step needs: those of the file, or the one before it."""
        if step.needs is not None:
            return step.needs
        return next(((before.id,) for before, each in pairwise(self.in_order) if each.id == step.id), ())

    def find_step(self, skill: str) -> PipelineStep | None:
        """Return the first step with a skill, or None."""
        return next((step for step in self.steps if step.skill_name == skill), None)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if faults := [*self._faults()]:
            raise PydanticCustomError(FAULTS, "{fault}", {"fault": faults[0][1], "faults": faults})
        return self

    def _faults(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Yield the fields that do not fit the others, by their keys, each with the fault."""
        known, ids = set[str](), [step.id for step in self.steps]
        for number, step in enumerate(self.steps):
            keys = ("steps", number)
            if step.id in known:
                yield (*keys, "id"), f"two steps have the id {step.id!r}: give each step an id of its own"
            if unknown := sorted({*(step.needs or ())} - known):
                told = f"step {step.id!r} needs {', '.join(unknown)}: no step before it has this id"
                yield (*keys, "needs"), told
            if step.loop is not None:
                yield from (
                    ((*keys, "loop", key), told) for key, told in self._loop_faults(step, step.loop, known, ids)
                )
            known.add(step.id)

    def _loop_faults(
        self, step: PipelineStep, loop: Loop, known: set[str], ids: list[str]
    ) -> Iterator[tuple[str, str]]:
        if unknown := sorted({*loop.again} - known):
            yield "again", f"the loop of step {step.id!r} repeats {', '.join(unknown)}: no step before it has this id"
        if not loop.otherwise:
            return
        if loop.otherwise not in {*ids} - {step.id, *known}:
            yield "else", f"the loop of step {step.id!r} ends with {loop.otherwise!r}: name a step after it"
        elif (end := self.by_id[loop.otherwise]).loop is not None or end.when:
            yield "else", f"step {end.id!r} ends a run, so it has no `loop` and no `when`"


def value_at(content: Any, key: str) -> Any:
    """Return the value of a JSON content at a key with dots for inner keys; the content itself for ""."""
    for part in key.split(".") if key else ():
        content = content.get(part) if isinstance(content, dict) else None
    return content
