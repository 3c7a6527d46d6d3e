"""The deterministic backbone: how far a skill may lean on a model, what it may ask one, and what proves its answer."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import Field, model_validator

from fireswarm.contracts.base import Contract, JsonObject

MAX_MATERIAL_CHARS = 120_000
"""Of what goes to an advisor with its question, all pieces together."""

MAX_ADVICE_FILES = 20
"""Files that one piece of advice may hold: the most that a run may change."""

MAX_FILE_CHARS = 200_000


class ExecutionMode(StrEnum):
    """``metadata.execution_mode`` of a skill.

    ``deterministic``: no model, the same output for the same input. ``hybrid``: code first, a model where the input
    is ambiguous. ``advisor_only``: it takes a model's advice, which is checked before anything is done with it.
    """

    DETERMINISTIC = "deterministic"
    HYBRID = "hybrid"
    ADVISOR_ONLY = "advisor_only"


class AdviceKind(StrEnum):
    """What is asked for. Each kind has its own schema and its own checks."""

    SCHEMA = "schema"
    CODE = "code"
    PATCH = "patch"


class Material(Contract):
    """One piece of what the advisor may go by."""

    name: str = Field(min_length=1, max_length=400)
    text: str


class AdviceRequest(Contract):
    """A question to the advisor. ``scope`` are the patterns of paths that code or a patch may touch."""

    kind: AdviceKind
    question: str = Field(min_length=1, max_length=8_000)
    material: tuple[Material, ...] = Field(default=(), max_length=60)
    scope: tuple[str, ...] = Field(default=(), max_length=40)

    @model_validator(mode="after")
    def _is_bounded(self) -> AdviceRequest:
        size = sum(len(piece.text) for piece in self.material)
        if size > MAX_MATERIAL_CHARS:
            raise ValueError(f"the material has {size:,} characters; {MAX_MATERIAL_CHARS:,} are allowed")
        if self.kind is not AdviceKind.SCHEMA and not self.scope:
            raise ValueError("advice that is code needs a scope: the paths it may change")
        return self


class FileDraft(Contract):
    """A whole file, as the advisor would have it."""

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
    """Where something was read: lines of a file of the source bundle, counted from 1, and what stands there."""

    file: str = Field(min_length=1)
    line_start: int = Field(ge=1)
    line_end: int = Field(ge=1)
    quote: str = Field(default="", max_length=2_000)


class TraceEntry(Contract):
    """What a field rests on: evidence, or an assumption with its reason."""

    kind: Literal["EVIDENCE", "ASSUMPTION"] = "EVIDENCE"
    evidence: tuple[Evidence, ...] = Field(default=(), max_length=20)
    rationale: str = Field(default="", max_length=2_000)


class TraceMap(Contract):
    """``trace_map.json``: for each field of a schema, what it rests on."""

    fields: dict[str, TraceEntry]


class SchemaAdvice(Contract):
    """Advice of kind ``schema``."""

    inferred: JsonObject
    trace: TraceMap


class Advice(Contract):
    """An answer that has passed its checks. ``by`` is the model's name, or ``operator``."""

    kind: AdviceKind
    content: JsonObject
    by: str = ""


ADVICE: dict[AdviceKind, type[Contract]] = {
    AdviceKind.SCHEMA: SchemaAdvice,
    AdviceKind.CODE: CodeAdvice,
    AdviceKind.PATCH: PatchAdvice,
}
"""What the content of each kind has to be."""


_TEXT = {"type": "string"}


def _exactly(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_FILES = {"type": "array", "items": _exactly(path=_TEXT, content=_TEXT)}


def advice_schema(kind: AdviceKind) -> dict[str, Any]:
    """JSON Schema of the content of *kind*, in the words that every provider can be held to, where there are such."""
    match kind:
        case AdviceKind.CODE:
            return _exactly(files=_FILES, notes=_TEXT)
        case AdviceKind.PATCH:
            return _exactly(patch=_TEXT, explanation=_TEXT)
        case AdviceKind.SCHEMA:
            return SchemaAdvice.model_json_schema()
