"""Progressive disclosure of a skill in stages. Functions over a skill and its folder, without state.

==============  =====================================================================================================
0 metadata      name and description, as in the list of candidates
1 whole         all of SKILL.md, the skill's folder, its files and its allowed tools, when it is used
2 files         the requested files and sections, in pages
3 scripts       executable files: path, interpreter and first words; for people
==============  =====================================================================================================

Paths outside the skill's folder are rejected. If a SKILL.md refers to scripts elsewhere, only its metadata is shown,
unless the caller passes ``block_outside=False``.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path

from fireswarm.contracts.limits import SNIFF_BYTES
from fireswarm.errors import InvalidInput
from fireswarm.skills.packs import origin, skill_body
from fireswarm.skills.packs.catalog import Skill
from fireswarm.skills.packs.parse import MAX_FILE_BYTES, Parsed, parse
from fireswarm.skills.packs.scripts import describe, scripts_of

CHARS_PER_TOKEN = 4
"""Token estimate of the specification: one per four characters, rounded up."""

MAX_OFFERED = 200

MAX_CONTENT_BYTES = 50_000_000
"""Maximum bytes that are read of a file, far more than an image or a PDF that can be shown."""

MAX_FILES_SEARCHED = 2_000
"""Maximum number of a skill's files in which a name with different case is searched."""


@dataclass(frozen=True, slots=True)
class DisclosedFile:
    """The shown part of one file: bytes in UTF-8 and estimated tokens."""

    path: str
    bytes: int
    tokens: int
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Disclosed:
    """One step of disclosure. ``offered`` is available on request; ``refused`` pairs a request with the reason."""

    stage: int
    skill: str
    text: str
    files: tuple[DisclosedFile, ...] = ()
    offered: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()

    @property
    def bytes(self) -> int:
        """Bytes of ``text`` in UTF-8."""
        return len(self.text.encode("utf-8", "replace"))

    @property
    def tokens(self) -> int:
        """Estimated tokens of ``text``."""
        return estimated_tokens(self.text)


def estimated_tokens(text: str) -> int:
    """Estimate the tokens of *text*: ``ceil(characters / 4)``."""
    return math.ceil(len(text) / CHARS_PER_TOKEN)


def provenance(skill: Skill) -> tuple[str, ...]:
    """Return a sentence for each script outside the skill's folder. Reads SKILL.md again."""
    return (*origin.entry_outside(skill.metadata, skill.folder), *origin.outside(_read(skill), skill.folder))


def metadata(skill: Skill) -> Disclosed:
    """Stage 0: name, description and tags."""
    text = f"{skill.name}: {skill.description}" + (f" [{', '.join(skill.tags)}]" if skill.tags else "")
    return Disclosed(0, skill.name, text, (_disclosed_file(skill.file, text),))


def whole(skill: Skill, *, block_outside: bool = True) -> Disclosed:
    """Return all of SKILL.md, its folder and its files: stage 1 for a model that can read files itself."""
    blocked = _block(skill, 1, block_outside)
    if blocked is not None:
        return blocked
    body = _read(skill).body.strip()
    files = [path.relative_to(skill.folder).as_posix() for path in sorted(skill.folder.rglob("*")) if path.is_file()]
    listed = [path for path in files if "__pycache__" not in path and path != skill.file]
    tools = ", ".join(skill.allowed_tools)
    lines = [
        f"Folder of this skill, in commands $SKILL_DIR: {skill.folder}",
        *([f"Files: {', '.join(listed[:MAX_OFFERED])}"] if listed else []),
        *([f"It may use only these tools: {tools}"] if tools else []),
        *([f"It needs: {skill.compatibility}"] if skill.compatibility else []),
    ]
    text = "\n".join([*lines, "", body])
    return Disclosed(1, skill.name, text, (_disclosed_file(skill.file, body),), tuple(listed[:MAX_OFFERED]))


def file_text(skill: Skill, asked: str, *, block_outside: bool = True) -> tuple[str, str]:
    """Return path and text of a file of the skill, or of a section (``SKILL.md#Heading``). Raises InvalidInput."""
    _check_readable(skill, block_outside)
    try:
        return _asked_for(skill, asked)
    except (ValueError, OSError) as reason:
        raise InvalidInput(f"{asked}: {_read_fault(reason)}") from reason


def file_content(skill: Skill, asked: str, *, block_outside: bool = True) -> tuple[str, bytes]:
    """Return path and bytes of a file of the skill, at most MAX_CONTENT_BYTES. Raises InvalidInput."""
    _check_readable(skill, block_outside)
    try:
        found = _inside(skill.folder, asked.removeprefix("./"))
        with found.open("rb") as file:
            content = file.read(MAX_CONTENT_BYTES)
        return found.relative_to(os.path.realpath(skill.folder)).as_posix(), content
    except (ValueError, OSError) as reason:
        raise InvalidInput(f"{asked}: {_read_fault(reason)}") from reason


def _check_readable(skill: Skill, block_outside: bool) -> None:
    """Raise InvalidInput if only the metadata of a skill may be shown."""
    if (blocked := _block(skill, 2, block_outside)) is not None:
        raise InvalidInput("; ".join(why for _, why in blocked.refused))


def scripts(skill: Skill, *, block_outside: bool = True) -> Disclosed:
    """Stage 3: executable files and their constraints. Only the first words of each script are shown."""
    blocked = _block(skill, 3, block_outside)
    if blocked is not None:
        return blocked
    scripts = scripts_of(skill.folder, skill.entry)
    lines = [describe(script) for script in scripts] or ["This skill has no scripts."]
    tools = ", ".join(skill.allowed_tools) if skill.allowed_tools else "all that the run allows"
    lines += ["", f"Run from: {skill.folder}", f"Allowed tools: {tools}"]
    if skill.compatibility:
        lines.append(f"Needs: {skill.compatibility}")
    if skill.entry is not None:
        safe = "is idempotent and may be repeated" if skill.idempotent else "must not be repeated once started"
        lines.append(f"Entry: {skill.entry.as_posix()}, function run(SkillRequest) -> SkillResult; it {safe}")
    text = "\n".join(lines)
    shown = [_disclosed_file(script.path, describe(script)) for script in scripts]
    return Disclosed(3, skill.name, text, tuple(shown), tuple(script.path for script in scripts))


# ── stage 2 ─────────────────────────────────────────────────────────────────────────────────────────────


def _asked_for(skill: Skill, asked: str) -> tuple[str, str]:
    """Return path and text of a requested reference. Raises ValueError or OSError with the reason of a refusal."""
    path, _, title = asked.strip().partition("#")
    path = path.strip().removeprefix("./") or skill.file
    file = _inside(skill.folder, path)
    if not title:
        return path, _text_of(file)
    body = _read(skill).body if path == skill.file else _text_of(file)
    for section in skill_body.sections(body):
        if section.title == title or skill_body.anchor(section.title) == skill_body.anchor(title):
            return f"{path}#{section.title}", section.text
    raise ValueError(f"{path} has no section {title!r}")


def _inside(folder: Path, path: str) -> Path:
    """Return the file at *path* below *folder*, ignoring case. Raises ValueError if it is missing or outside."""
    if "\0" in path or origin.leads_outside(path, folder):
        raise ValueError("it is outside the skill's folder")
    if not (folder / path).exists():
        path = _in_other_case(folder, path)
    file = Path(os.path.realpath(folder / path))
    if not file.is_relative_to(os.path.realpath(folder)):
        raise ValueError("it is outside the skill's folder")
    if file.is_dir():
        raise ValueError("it is a folder: request the files in it")
    if not file.is_file():
        raise ValueError("the file does not exist")
    return file


def _in_other_case(folder: Path, path: str) -> str:
    """Return the only path that differs from *path* just in case, or *path*: texts may say FORMS.md for forms.md."""
    wanted = Path(path).as_posix().lower()
    found = [each for each in _files_below(folder) if each.lower() == wanted]
    return found[0] if len(found) == 1 else path


def _files_below(folder: Path) -> list[str]:
    below = [Path(at) / name for at, _, names in os.walk(folder) for name in names]
    return [path.relative_to(folder).as_posix() for path in below[:MAX_FILES_SEARCHED]]


def _text_of(file: Path) -> str:
    with file.open("rb") as opened:
        data = opened.read(MAX_FILE_BYTES)
    if b"\0" in data[:SNIFF_BYTES]:
        raise ValueError("it is not text")
    return data.decode("utf-8-sig", "replace").replace("\r\n", "\n")


# ── all stages ──────────────────────────────────────────────────────────────────────────────────────────


def _read(skill: Skill) -> Parsed:
    with skill.path.open("rb") as file:
        return parse(file.read(MAX_FILE_BYTES + 1))


def _block(skill: Skill, stage: int, block_outside: bool) -> Disclosed | None:
    try:
        faults = provenance(skill)
    except OSError as error:
        return Disclosed(stage, skill.name, "", refused=((skill.file, _read_fault(error)),))
    if not faults or not block_outside:
        return None
    return Disclosed(stage, skill.name, "", refused=tuple((skill.name, fault) for fault in faults))


def _disclosed_file(path: str, text: str, truncated: bool = False) -> DisclosedFile:
    return DisclosedFile(path, len(text.encode("utf-8", "replace")), estimated_tokens(text), truncated)


def _read_fault(error: Exception) -> str:
    return f"it cannot be read: {error.strerror}" if isinstance(error, OSError) else str(error)
