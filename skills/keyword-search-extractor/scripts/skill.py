"""Entry of the skill: read the request, search, and return one artifact."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from fireswarm import Artifact, Question, SkillRequest, SkillResult, SkillState

from .search_keywords import MAX_LIMIT, as_json, as_markdown, extent_of, pattern_of, search

_QUOTED = re.compile(r"[\"“«]([^\"“”«»]{2,80}+)[\"”»]|`([^`]{2,80})`|(?<!\w)'([^']{2,80})'(?!\w)")
_SHOWN = 20
_SHOWN_CHARS = 200
"""Limits of hits and of their characters in the artifact's value, which is part of a document of bounded size."""


def run(request: SkillRequest) -> SkillResult:
    """Search ``context.path`` for the keywords of the request."""
    given = request.context.get("path") or request.answers.get("path")
    regex = request.context.get("regex")
    keywords = keywords_of(request)
    questions = [
        Question(name=name, description=text, type=kind)
        for name, text, kind, known in (
            ("path", "Folder or file to search", "path", given),
            ("keywords", "Words or phrases to search for, separated by commas", "string", keywords or regex),
        )
        if not known
    ]
    if questions:
        missing = " and ".join(question.name for question in questions)
        return SkillResult(
            state=SkillState.INPUT_REQUIRED, summary=f"Not given: {missing}.", questions=tuple(questions)
        )
    place = place_at(str(given))
    if not place.exists():
        return SkillResult.failure(f"There is nothing at {place}. Give an existing path.")
    try:
        pattern = pattern_of(keywords, str(regex) if regex else None)
        around = bounded(request, "context_lines", 1, 0, 10)
        limit = bounded(request, "limit", 200, 1, MAX_LIMIT)
    except ValueError as reason:
        return SkillResult.failure(f"{reason}.")
    found = search([place], pattern, around=around, limit=limit)
    total = found.counts.total()
    summary = f"{extent_of(found)} {'of' if found.searched else 'in'} {place.name}.{found.left_out.sentence()}"
    content = {"path": str(place), "keywords": keywords, "regex": regex, **as_json(found)}
    values = {
        "counts": [{"keyword": word[:80], "hits": often} for word, often in found.counts.most_common(_SHOWN)],
        "hits": [
            {"path": hit.path, "line": hit.line, "keyword": hit.keyword[:80], "text": hit.text[:_SHOWN_CHARS]}
            for hit in found.hits[:_SHOWN]
        ],
    }
    artifacts = (
        written(
            request,
            "keyword_hits",
            "keyword_hits.json",
            json.dumps(content, indent=2, ensure_ascii=False),
            summary,
            values,
        ),
        written(request, "keyword_list", "keyword_hits.md", as_markdown(found), summary),
    )
    insights: list[str] = []
    for label, counts in (("Found most", found.counts), ("Most hits are in", found.files)):
        if len(counts) > 1:
            first, often = counts.most_common(1)[0]
            insights.append(f"{label}: {first} ({often:,} of {total:,}).")
    absent = [word for word in keywords if not regex and " ".join(word.lower().split()) not in found.counts]
    if absent:
        insights.append(f"Not found: {', '.join(absent)}.")
    return SkillResult(summary=summary, artifacts=artifacts, insights=tuple(insights), confidence=1.0)


def written(request: SkillRequest, kind: str, name: str, text: str, summary: str, value: Any = None) -> Artifact:
    """Write a text below the workdir and return the artifact that refers to it."""
    data = text.encode("utf-8", "replace")
    request.workdir.mkdir(parents=True, exist_ok=True)
    (request.workdir / name).write_bytes(data)
    return Artifact(
        type=kind,
        name=name,
        summary=summary,
        value=value,
        uri=f"workdir:{name}",
        mime="application/json" if name.endswith(".json") else "text/markdown",
        size_bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
    )


def place_at(given: str) -> Path:
    """Return the path, or the path of a ``file://`` URI."""
    return Path(unquote(urlsplit(given).path) if given.startswith("file://") else given).expanduser()


def keywords_of(request: SkillRequest) -> list[str]:
    """Return the keywords of the context or the answers, otherwise the quoted text of the objective."""
    given = request.context.get("keywords") or request.answers.get("keywords")
    if given:
        words = given if isinstance(given, list) else str(given).split(",")
        return [text for word in words if (text := str(word).strip())]
    return ["".join(groups).strip() for groups in _QUOTED.findall(request.objective)]


def bounded(request: SkillRequest, name: str, usual: int, low: int, high: int) -> int:
    """Return an integer of the context within bounds; raises ValueError with the allowed range."""
    value = request.context.get(name, usual)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"context.{name} is {value!r}; it must be a whole number from {low} to {high}")
    return value
