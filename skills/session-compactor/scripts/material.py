"""Sentences of a session with their sources: the material for the summary."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from fireswarm import (
    Artifact,
    SkillRequest,
    format_score,
    read_regular_file,
)

MAX_READ_BYTES = 20_000_000
MAX_SENTENCE_CHARS = 600
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9`*])")
_CITATION = re.compile(r"(?<!\s)\s*+\[A\d++\]")
_SKIPPED_HEADINGS = ("source", "what earlier runs learned")
_NO_PROSE = ("|", "!", ">", "<", "Objective: ", "As of ")
_LIST_ITEM = re.compile(r"^(?:[-*+]|\d+[.)])\s+(?:\[[ x]\]\s+)?")
_ESCAPED = re.compile(r"\\([^\w\s])")


@dataclass(frozen=True)
class Sentence:
    """A sentence, the kind of its source, and its position in the material."""

    text: str
    kind: str
    source: str
    order: int


KIND_WEIGHT = {"artifact": 3.0, "summary": 3.0, "content": 2.5, "signal": 1.5, "insight": 2.0, "report": 1.0}
"""Weight of each kind of statement: results first, then observations, then prose of reports."""

KNOWN_TYPES = frozenset({"session_summary", "recalled_facts"})
PROSE_MIMES = frozenset({"text/markdown", "text/plain", "text/x-rst"})
PROSE_ENDINGS = (".md", ".markdown", ".txt", ".rst")
MAX_PROSE_CHARS = 400_000
"""Maximum characters of one artifact that are split into sentences."""


def loaded(artifact: Artifact) -> Any:
    """Return the JSON object of *artifact*: from its file if that is readable, otherwise its value."""
    text = text_of(artifact)
    if text is not None:
        try:
            return json.loads(text)
        except ValueError:
            return artifact.value
    return artifact.value


def text_of(artifact: Artifact) -> str | None:
    """Return the text of the artifact's file, or None."""
    uri = artifact.uri or ""
    if not uri or uri.startswith("workdir:"):
        return None
    path = Path(unquote(urlsplit(uri).path)) if uri.startswith("file://") else Path(uri)
    try:
        return read_regular_file(path, MAX_READ_BYTES).decode("utf-8", "replace")
    except OSError:
        return None


def gather(request: SkillRequest) -> list[Sentence]:
    """Return every statement of the request, in a stable order, without repetitions.

    The content of an artifact is read, and its summary only if it has no prose: a summary of summaries loses what the
    first one left out. Earlier summaries and recalled facts are known already.
    """
    found: list[tuple[str, str, str]] = []
    read: set[str] = set()
    for artifact in all_artifacts(request):
        source = artifact.source_task_id or ""
        prose = [] if artifact.type in KNOWN_TYPES else prose_of(artifact)
        if prose:
            read.add(source)
        kind = "report" if artifact.type == "report" else "content"
        if artifact.summary and (not prose or kind == "report"):
            found += [(text, "artifact", source) for text in _SENTENCE.split(artifact.summary)]
        found += [(text, kind, source) for text in prose]
    for child in request.children:
        if child.task_id not in read:
            found.append((child.summary, "summary", child.task_id))
        found += [(text, "insight", child.task_id) for text in child.insights]
    signals = [*request.signals, *(signal for child in request.children for signal in child.signals)]
    for signal in sorted(signals, key=lambda signal: (-signal.strength, signal.name, signal.subject))[:60]:
        about = f" on {signal.subject}" if signal.subject else ""
        note = f": {signal.note}" if signal.note else ""
        found.append((f"Signal {signal.name} ({format_score(signal.strength)}){about}{note}.", "signal", ""))
    seen: dict[str, Sentence] = {}
    for text, kind, source in found:
        clean = " ".join(text.split())
        if clean and clean.lower() not in seen:
            seen[clean.lower()] = Sentence(clean[:MAX_SENTENCE_CHARS], kind, source, len(seen))
    return list(seen.values())


def prose_of(artifact: Artifact) -> list[str]:
    """Return the sentences of an artifact's content, if it is text: a Markdown or text file, or a text value."""
    kind = (artifact.mime or "").partition(";")[0]
    name = (artifact.name or artifact.uri or "").lower()
    is_text = kind in PROSE_MIMES or (not kind and (artifact.type == "report" or name.endswith(PROSE_ENDINGS)))
    text = text_of(artifact) if is_text or artifact.type == "report" else None
    if text is None and isinstance(artifact.value, str):
        text = artifact.value
    return report_sentences(text[:MAX_PROSE_CHARS]) if text else []


def all_artifacts(request: SkillRequest) -> list[Artifact]:
    """Artifacts of dependencies and of children, each once."""
    found: dict[tuple[str, str, str | None], Artifact] = {}
    for artifact in [*request.artifacts, *(artifact for child in request.children for artifact in child.artifacts)]:
        found.setdefault((artifact.type, artifact.name, artifact.sha256), artifact)
    return list(found.values())


def report_sentences(text: str) -> list[str]:
    """Return the prose and list items of a Markdown report, without tables, headings, code and its list of sources."""
    found: list[str] = []
    skipped_level = 0
    fenced = False
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("```"):
            fenced = not fenced
        elif stripped.startswith("#"):
            skipped_level = _skipped(stripped, skipped_level)
        elif stripped and not fenced and not skipped_level and not stripped.startswith(_NO_PROSE):
            plain = _ESCAPED.sub(r"\1", _CITATION.sub("", _LIST_ITEM.sub("", stripped)))
            found += _SENTENCE.split(plain)
    return [sentence for sentence in found if len(sentence) > 20]


def _skipped(heading: str, level_before: int) -> int:
    """Return the level of the skipped section that contains *heading*, or 0 outside such a section."""
    level = len(heading) - len(heading.lstrip("#"))
    if level_before and level > level_before:
        return level_before
    return level if heading.lstrip("# ").lower().startswith(_SKIPPED_HEADINGS) else 0
