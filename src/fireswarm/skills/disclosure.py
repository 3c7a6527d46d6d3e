"""Progressive disclosure: what of a skill is shown when. Functions over a skill and its folder; nothing is remembered.

==============  =====================================================================================================
0 metadata      name and description, as every candidate shows them
1 overview      title and summary sections of SKILL.md; which sections and references there are to ask for
2 references    the files and sections asked for, and no others, within caps on bytes and on tokens
3 scripts       what can be executed, by path, interpreter and first words; the tools it may use
==============  =====================================================================================================

Whatever leads out of the skill's folder is refused. A skill whose SKILL.md names scripts elsewhere shows nothing beyond
its metadata, unless the caller passes ``block_outside=False``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fireswarm.skills.packs import body as bodies
from fireswarm.skills.packs import provenance as origin
from fireswarm.skills.packs.catalog import Skill
from fireswarm.skills.packs.parse import MAX_FILE_BYTES, Parsed, parse
from fireswarm.skills.packs.scripts import describe, scripts_of

CHARS_PER_TOKEN = 4
"""The seed's estimate of tokens: one for four characters begun."""

OVERVIEW_CHARS = 6_000
"""Most characters of stage 1 that are text of SKILL.md (about 1,500 tokens); what is cut off can be asked for."""

SUMMARY_TITLES = ("overview", "summary", "when to use", "purpose", "about", "introduction", "inputs", "quick start")
"""Sections whose titles begin like this tell what a skill is for, and belong to stage 1."""

LEAST_SHOWN_CHARS = 40
"""A smaller rest of the caps is not worth the tokens that announce it."""

MAX_OFFERED = 200


@dataclass(frozen=True, slots=True)
class DisclosureLimits:
    """Most of all references together that are disclosed in a run; the defaults are the seed's."""

    max_reference_bytes: int = 120_000
    max_reference_tokens: int = 4_000


@dataclass(frozen=True, slots=True)
class DisclosedFile:
    """What was shown of one file: bytes in UTF-8 and estimated tokens of the text shown."""

    path: str
    bytes: int
    tokens: int
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Disclosed:
    """One step of disclosure. ``offered`` can be asked for next; ``refused`` pairs what was asked with the reason."""

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


@dataclass(frozen=True, slots=True)
class Spent:
    """What references have cost so far in a run."""

    bytes: int = 0
    tokens: int = 0

    def plus(self, disclosed: Disclosed) -> Spent:
        """After another step; only stage 2 counts against the caps."""
        if disclosed.stage != 2:
            return self
        return Spent(self.bytes + disclosed.bytes, self.tokens + disclosed.tokens)


def estimated_tokens(text: str) -> int:
    """Tokens of *text* by its length: ``ceil(characters / 4)``."""
    return math.ceil(len(text) / CHARS_PER_TOKEN)


def provenance(skill: Skill) -> tuple[str, ...]:
    """What speaks against the skill's origin: scripts outside its folder, one sentence each. Reads SKILL.md anew."""
    return (*origin.entry_outside(skill.metadata, skill.folder), *origin.outside(_read(skill), skill.folder))


def metadata(skill: Skill) -> Disclosed:
    """Stage 0: name, description and tags."""
    text = f"{skill.name}: {skill.description}" + (f" [{', '.join(skill.tags)}]" if skill.tags else "")
    return Disclosed(0, skill.name, text, (_disclosed_file(skill.file, text),))


def overview(skill: Skill, *, block_outside: bool = True) -> Disclosed:
    """Stage 1: title and summary of SKILL.md, and what it offers: ``SKILL.md#Heading`` and reference files."""
    blocked = _block(skill, 1, block_outside)
    if blocked is not None:
        return blocked
    body = _read(skill).body
    text, whole = _summary(body)
    offered = [f"{skill.file}#{section.title}" for section in bodies.sections(body) if section.text not in text]
    offered += skill.references_index
    return Disclosed(1, skill.name, text, (_disclosed_file(skill.file, text, not whole),), tuple(offered[:MAX_OFFERED]))


def references(
    skill: Skill,
    requested: Iterable[str],
    limits: DisclosureLimits | None = None,
    spent: Spent | None = None,
    *,
    block_outside: bool = True,
) -> Disclosed:
    """Stage 2: the files (``references/x.md``) and sections (``SKILL.md#Heading``) asked for, within the caps.

    *spent* is what earlier steps of the run took of the caps. What does not fit is cut at a line, and said.
    """
    blocked = _block(skill, 2, block_outside)
    if blocked is not None:
        return blocked
    allowed, used = limits or DisclosureLimits(), spent or Spent()
    text = ""
    files: list[DisclosedFile] = []
    refused: list[tuple[str, str]] = []
    for asked in dict.fromkeys(requested):
        try:
            path, content = _asked_for(skill, asked)
        except (ValueError, OSError) as reason:
            refused.append((asked, _read_fault(reason)))
            continue
        fitted = _fit(path, content, text, allowed, used)
        if fitted is None:
            caps = f"{allowed.max_reference_bytes:,} bytes and {allowed.max_reference_tokens:,} tokens"
            refused.append((asked, f"the limit for references is reached ({caps})"))
            continue
        text, shown = fitted
        files.append(shown)
    return Disclosed(2, skill.name, text, tuple(files), refused=tuple(refused))


def scripts(skill: Skill, *, block_outside: bool = True) -> Disclosed:
    """Stage 3: what can be executed and under which constraints. No script's text beyond its first words is shown."""
    blocked = _block(skill, 3, block_outside)
    if blocked is not None:
        return blocked
    found = scripts_of(skill.folder, skill.entry)
    lines = [describe(script) for script in found] or ["This skill has no scripts."]
    tools = ", ".join(skill.allowed_tools) if skill.allowed_tools else "all that the run allows"
    lines += ["", f"Run from: {skill.folder}", f"Allowed tools: {tools}"]
    if skill.compatibility:
        lines.append(f"Needs: {skill.compatibility}")
    if skill.entry is not None:
        safe = "is idempotent and may be repeated" if skill.idempotent else "must not be repeated once started"
        lines.append(f"Entry: {skill.entry.as_posix()}, function run(SkillRequest) -> SkillResult; it {safe}")
    text = "\n".join(lines)
    shown = [_disclosed_file(script.path, describe(script)) for script in found]
    return Disclosed(3, skill.name, text, tuple(shown), tuple(script.path for script in found))


# ── stage 1 ─────────────────────────────────────────────────────────────────────────────────────────────


def _summary(body: str) -> tuple[str, bool]:
    """Title, introduction and summary sections; the first section where there are none. False: some was cut off."""
    lines = body.split("\n")
    marks = bodies.headings(body)
    start = next((line for level, _, line in marks if level > 1), len(lines))
    parts = ["\n".join(lines[:start]).strip()]
    wanted = [section for section in bodies.sections(body) if section.title.lower().startswith(SUMMARY_TITLES)]
    if not wanted and len(parts[0]) < OVERVIEW_CHARS // 20:
        wanted = [section for section in bodies.sections(body) if section.level > 1][:1]
    for section in wanted:
        if not any(section.text in part for part in parts):
            parts.append(section.text)
    text = "\n\n".join(part for part in parts if part)
    if len(text) <= OVERVIEW_CHARS:
        return text, True
    return _cut_at_line(text[:OVERVIEW_CHARS]), False


# ── stage 2 ─────────────────────────────────────────────────────────────────────────────────────────────


def _asked_for(skill: Skill, asked: str) -> tuple[str, str]:
    """Path and text of what was asked for; ValueError or OSError says why it is refused."""
    path, _, title = asked.strip().partition("#")
    path = path.strip().removeprefix("./") or skill.file
    file = _inside(skill.folder, path)
    if not title:
        return path, _text_of(file)
    body = _read(skill).body if path == skill.file else _text_of(file)
    for section in bodies.sections(body):
        if section.title == title or bodies.anchor(section.title) == bodies.anchor(title):
            return f"{path}#{section.title}", section.text
    raise ValueError(f"{path} has no section {title!r}")


def _inside(folder: Path, path: str) -> Path:
    """The file that *path* names below *folder*; ValueError when it is none, or leads out of it."""
    if "\0" in path or origin.leads_outside(path, folder):
        raise ValueError("it is outside the skill's folder")
    file = Path(os.path.realpath(folder / path))
    if not file.is_relative_to(os.path.realpath(folder)):
        raise ValueError("it is outside the skill's folder")
    if file.is_dir():
        raise ValueError("it is a folder: request the files in it")
    if not file.is_file():
        raise ValueError("the file does not exist")
    return file


def _text_of(file: Path) -> str:
    with file.open("rb") as opened:
        data = opened.read(MAX_FILE_BYTES)
    if b"\0" in data[:8_192]:
        raise ValueError("it is not text")
    return data.decode("utf-8-sig", "replace").replace("\r\n", "\n")


def _fit(
    path: str, content: str, before: str, limits: DisclosureLimits, spent: Spent
) -> tuple[str, DisclosedFile] | None:
    """The text with *content* added under a line that names it, cut to what the caps leave; None when nothing fits."""
    gap = "\n\n" if before else ""
    whole = f"[{path}]\n"
    note = f"[{path}: truncated, {len(content):,} characters in total]\n"
    full = before + gap + whole + content
    if _within(full, limits, spent) == full:
        return full, _disclosed_file(path, content)
    fitted = _within(before + gap + note + content, limits, spent)
    start = len(before + gap + note)
    if len(fitted) < start + LEAST_SHOWN_CHARS:
        return None
    shown = _cut_at_line(fitted[start:])
    return fitted[:start] + shown, _disclosed_file(path, shown, True)


def _within(text: str, limits: DisclosureLimits, spent: Spent) -> str:
    """As much of *text* as both caps leave, at whole characters."""
    text = text[: max(0, limits.max_reference_tokens - spent.tokens) * CHARS_PER_TOKEN]
    room = max(0, limits.max_reference_bytes - spent.bytes)
    data = text.encode("utf-8", "replace")
    return text if len(data) <= room else data[:room].decode("utf-8", "ignore")


def _cut_at_line(text: str) -> str:
    """Drop a last, broken line, unless that would drop more than half."""
    end = text.rfind("\n")
    return text[:end] if end > len(text) // 2 else text


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
