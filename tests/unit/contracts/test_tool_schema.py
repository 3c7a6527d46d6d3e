"""The schema that a model reads says each thing once, and nothing that changes nothing."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from fireswarm.contracts.llm.tool_schema import tool_schema
from fireswarm.swarm.turn.engines.role_result import RESULT_SCHEMA


class Part(BaseModel):
    """A part,
    in ``words``."""

    title: str = ""
    made_at: str = ""


class Whole(BaseModel):
    count: int = 3
    name: str = Field(max_length=9, description="its name")
    kind: Literal["a", "b"] | None = None
    parts: list[Part] = Field(default=[], max_length=2)
    either: int | str | None = None
    more: dict[str, Part] = {}


def test_schema_has_no_titles_no_empty_defaults_and_no_null() -> None:
    part = {"description": "A part, in `words`.", "properties": {"title": {"type": "string"}}, "type": "object"}
    assert tool_schema(Whole, without={"made_at"}) == {
        "$defs": {"Part": part},
        "properties": {
            "count": {"default": 3, "type": "integer"},
            "name": {"description": "its name", "type": "string"},
            "kind": {"enum": ["a", "b"], "type": "string"},
            "parts": {"items": {"$ref": "#/$defs/Part"}, "type": "array"},
            "either": {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]},
            "more": {"additionalProperties": {"$ref": "#/$defs/Part"}, "type": "object"},
        },
        "required": ["name"],
        "type": "object",
    }


def test_result_of_a_role_offers_nothing_that_the_store_sets() -> None:
    definitions = RESULT_SCHEMA["$defs"]
    assert not {"fact_id", "learned_at"} & definitions["Fact"]["properties"].keys()
    assert "title" not in definitions["PlannedTask"] and "checks" in definitions["PlannedTask"]["properties"]
