"""Plan templates as data: ``references/templates/*.yaml``, validated strictly."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

TEMPLATES = Path(__file__).resolve().parent.parent / "references" / "templates"
FALLBACK = "fallback"


class TemplateBroken(Exception):
    """A template file cannot be used; the message names the file and the error."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Match(_Strict):
    """Weights of words and phrases of the objective that select a template."""

    keywords: dict[str, float] = Field(default_factory=dict)
    phrases: dict[str, float] = Field(default_factory=dict)


class Needs(_Strict):
    """Required keys of the context."""

    path: Literal["folder", "csv", "any"]


class TaskTemplate(_Strict):
    """One task with placeholders; an optional one is dropped if the swarm lacks its role."""

    key: str
    assigned_to: str
    skill: str
    objective: str
    context: dict[str, Any] = Field(default_factory=dict)
    depends_on: tuple[str, ...] = ()
    expected_outcome: str = ""
    optional: bool = False


class Template(_Strict):
    """A task graph, and when to choose it. ``examples`` are objectives that it answers."""

    name: str
    description: str
    examples: tuple[str, ...] = ()
    match: Match
    needs: Needs
    tasks: tuple[TaskTemplate, ...] = Field(min_length=1)


def load_templates(folder: Path = TEMPLATES) -> list[Template]:
    """Read every template below *folder*, sorted by name; raises :class:`TemplateBroken`."""
    found: list[Template] = []
    for file in sorted(folder.glob("*.yaml")):
        try:
            template = Template.model_validate(yaml.safe_load(file.read_text(encoding="utf-8")))
        except (yaml.YAMLError, ValidationError, UnicodeDecodeError) as error:
            raise TemplateBroken(f"{file.name} is not a plan template: {error}") from error
        if template.name != file.stem:
            raise TemplateBroken(f"{file.name} has the name {template.name}; the name must match the file.")
        found.append(template)
    return found
