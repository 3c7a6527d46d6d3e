"""The catalog: every ``<folder>/SKILL.md`` by name. One bad file never stops the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from fireswarm.contracts.frontmatter import split_frontmatter
from fireswarm.errors import NotFound

SKILL_FILE = "SKILL.md"


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill pack. ``entry`` is its code, relative to ``folder``; None when it is instructions only.

    ``idempotent`` says that running it twice does no harm: then a crash in the middle just runs it again.
    """

    name: str
    description: str
    folder: Path
    entry: Path | None = None
    version: str = ""
    tags: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()
    idempotent: bool = True


@dataclass(frozen=True, slots=True)
class Catalog:
    """Skills by name, and what had to be left out with the reason."""

    skills: Mapping[str, Skill] = field(default_factory=dict)
    left_out: tuple[tuple[Path, str], ...] = ()

    def get(self, name: str) -> Skill:
        """Return a skill; NotFound lists what there is."""
        if name not in self.skills:
            known = ", ".join(sorted(self.skills)) or "none"
            raise NotFound(f"there is no skill {name!r} (found: {known}); add skills/{name}/SKILL.md")
        return self.skills[name]


def load_catalog(folders: Iterable[Path]) -> Catalog:
    """Scan *folders* for skill packs; in case of equal names the earlier folder wins."""
    skills: dict[str, Skill] = {}
    left_out: list[tuple[Path, str]] = []
    for folder in folders:
        for path in sorted(folder.glob(f"*/{SKILL_FILE}")):
            try:
                skill = load_skill(path)
            except (ValueError, OSError, yaml.YAMLError) as error:
                left_out.append((path, str(error)))
                continue
            if skill.name in skills:
                left_out.append((path, f"shadowed by {skills[skill.name].folder}"))
                continue
            skills[skill.name] = skill
    return Catalog(skills, tuple(left_out))


def load_skill(path: Path) -> Skill:
    """Read one SKILL.md; ValueError says why it cannot be used."""
    fields, body = split_frontmatter(path.read_text(encoding="utf-8"))
    name = str(fields.get("name") or path.parent.name)
    description = str(fields.get("description") or "").strip()
    if not description:
        raise ValueError("it has no description, so nobody could choose it")
    metadata: dict[str, Any] = fields.get("metadata") or {}
    return Skill(
        name=name,
        description=description,
        folder=path.parent.resolve(),
        entry=_entry(path.parent.resolve(), metadata.get("entry")),
        version=str(metadata.get("version", "")),
        tags=_listed(metadata.get("tags", fields.get("tags"))),
        roles=_listed(metadata.get("roles")),
        idempotent=str(metadata.get("idempotent", "true")).lower() != "false",
        headings=tuple(line.lstrip("# ").strip() for line in body.splitlines() if line.startswith("#")),
    )


def _entry(folder: Path, named: Any) -> Path | None:
    if not named:
        return None
    entry = (folder / str(named)).resolve()
    if not entry.is_relative_to(folder):
        raise ValueError(f"its entry {named!r} lies outside its folder")
    if not entry.is_file():
        raise ValueError(f"its entry {named!r} does not exist")
    return entry.relative_to(folder)


def _listed(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    words: list[Any] = str(value).split(",") if isinstance(value, str) else list(value)
    return tuple(text for word in words if (text := str(word).strip()))
