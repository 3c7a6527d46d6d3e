"""Choose a skill for a task. Pure: metadata only, no file is opened."""

from __future__ import annotations

from collections.abc import Sequence

from rapidfuzz import fuzz, utils

from fireswarm.skills.catalog import Catalog, Skill

MIN_SCORE = 40.0
"""Below this token-set score (0-100) no skill is said to fit, and the role's default is taken."""


def choose(objective: str, named: str | None, role_skills: Sequence[str], catalog: Catalog) -> Skill:
    """Return the named skill, else the role's best match for *objective*, else the role's first.

    NotFound when a skill that the task or the role card names does not exist.
    """
    if named is not None:
        return catalog.get(named)
    skills = [catalog.get(name) for name in role_skills]
    scored = [(_score(objective, skill), -position) for position, skill in enumerate(skills)]
    best, position = max(scored)
    return skills[-position] if best >= MIN_SCORE else skills[0]


def _score(objective: str, skill: Skill) -> float:
    words = f"{skill.name.replace('-', ' ')} {skill.description} {' '.join(skill.tags)}"
    return fuzz.token_set_ratio(objective, words, processor=utils.default_process)
