"""Advice for pipeline steps: execution modes, questions to a model, and evidence for its answers."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import Field, model_validator

from fireswarm.contracts.base import Contract, JsonObject

MAX_PIECES = 60
MAX_MATERIAL_CHARS = 120_000
"""Maximum total size of the material sent to an advisor with a question."""

MAX_ADVICE_FILES = 20
"""Maximum number of files in one piece of advice: the number that a run may change."""

MAX_FILE_CHARS = 200_000


class ExecutionMode(StrEnum):
    """Value of ``metadata.execution_mode`` of a skill.

    ``deterministic``: no model, the same output for the same input. ``hybrid``: code first, a model where the input is
    ambiguous. ``advisor_only``: it uses a model's advice, which is checked first.
    """

    DETERMINISTIC = "deterministic"
    HYBRID = "hybrid"
    ADVISOR_ONLY = "advisor_only"


class AdviceKind(StrEnum):
    """Kind of advice. Each kind has a separate schema and separate checks; the schema of ``data`` is a pipeline's."""

    SCHEMA = "schema"
    CODE = "code"
    PATCH = "patch"
    DATA = "data"


class Material(Contract):
    """One piece of material for the advisor."""

    name: str = Field(min_length=1, max_length=400)
    text: str


class AdviceRequest(Contract):
    """A question to the advisor. ``scope`` lists the path patterns that code or a patch may change.

    ``answer_schema`` is the JSON Schema of an answer of the kind ``data``: the pipeline sets it, from the step's
    ``advice`` file.
    """

    kind: AdviceKind
    question: str = Field(min_length=1, max_length=8_000)
    material: tuple[Material, ...] = Field(default=(), max_length=MAX_PIECES)
    scope: tuple[str, ...] = Field(default=(), max_length=40)
    answer_schema: JsonObject = Field(default_factory=dict)

    @model_validator(mode="after")
    def _is_bounded(self) -> AdviceRequest:
        size = sum(len(piece.text) for piece in self.material)
        if size > MAX_MATERIAL_CHARS:
            raise ValueError(f"the material has {size:,} characters; at most {MAX_MATERIAL_CHARS:,} are allowed")
        if self.kind in (AdviceKind.CODE, AdviceKind.PATCH) and not self.scope:
            raise ValueError("advice with code needs a scope: the paths that it may change")
        return self


class FileDraft(Contract):
    """A whole file proposed by the advisor."""

    path: str = Field(min_length=1, max_length=400)
    content: str = Field(max_length=MAX_FILE_CHARS)


class CodeAdvice(Contract):
    """Advice of kind ``code``."""

    files: tuple[FileDraft, ...] = Field(min_length=1, max_length=MAX_ADVICE_FILES)
    notes: str = Field(default="", max_length=4_000)


class PatchAdvice(Contract):
    """Advice of kind ``patch``: a unified diff with paths from the project's root."""

    patch: str = Field(min_length=1, max_length=MAX_FILE_CHARS)
    explanation: str = Field(default="", max_length=4_000)


class Evidence(Contract):
    """Source of a statement: a file of the source bundle, its lines counted from 1, and a quote."""

    file: str = Field(min_length=1)
    line_start: int = Field(ge=1)
    line_end: int = Field(ge=1)
    quote: str = Field(default="", max_length=2_000)


class TraceEntry(Contract):
    """Basis of a schema field: evidence, or an assumption with its rationale."""

    kind: Literal["EVIDENCE", "ASSUMPTION"] = "EVIDENCE"
    evidence: tuple[Evidence, ...] = Field(default=(), max_length=20)
    rationale: str = Field(default="", max_length=2_000)


class TraceMap(Contract):
    """``trace_map.json``: the basis of each field of a schema."""

    fields: dict[str, TraceEntry]


class SchemaAdvice(Contract):
    """Advice of kind ``schema``."""

    inferred: JsonObject
    trace: TraceMap


class Advice(Contract):
    """A checked answer. ``by`` is the model's name, or ``operator``."""

    kind: AdviceKind
    content: JsonObject
    by: str = ""


ADVICE: dict[AdviceKind, type[Contract]] = {
    AdviceKind.SCHEMA: SchemaAdvice,
    AdviceKind.CODE: CodeAdvice,
    AdviceKind.PATCH: PatchAdvice,
}
"""Model class for the content of each kind."""


_TEXT = {"type": "string"}


def _exactly(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_FILES = {"type": "array", "items": _exactly(path=_TEXT, content=_TEXT)}


def advice_schema(asks: AdviceRequest) -> dict[str, Any]:
    """Return the JSON Schema of an answer, if possible in the subset that all providers can enforce."""
    match asks.kind:
        case AdviceKind.DATA:
            return asks.answer_schema
        case AdviceKind.CODE:
            return _exactly(files=_FILES, notes=_TEXT)
        case AdviceKind.PATCH:
            return _exactly(patch=_TEXT, explanation=_TEXT)
        case AdviceKind.SCHEMA:
            return SchemaAdvice.model_json_schema()
