"""Metadata of a skill for the prefilter and the model, and the reason why it was proposed."""

from __future__ import annotations

from pydantic import Field

from fireswarm.contracts.base import Contract


class SkillMetadata(Contract):
    """Disclosure stage 0 of a skill, from its frontmatter; ``references_index`` lists files relative to its folder."""

    name: str
    description: str
    tags: tuple[str, ...] = ()
    version: str = ""
    allowed_tools: tuple[str, ...] = ()
    references_index: tuple[str, ...] = ()
    license: str = ""
    compatibility: str = ""
    metadata: dict[str, str] = Field(default_factory=dict)


class SkillCandidate(Contract):
    """A skill proposed for a task: ``score`` from 0 to 100, and the ``reason`` for it."""

    skill_name: str
    score: float = Field(ge=0.0, le=100.0)
    reason: str = ""
