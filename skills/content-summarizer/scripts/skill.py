"""Entry of the skill: read the request, summarize, and return one artifact."""

from __future__ import annotations

import hashlib
from pathlib import Path
from urllib.parse import unquote, urlsplit

from fireswarm import Artifact, Question, SkillRequest, SkillResult, SkillState, count_noun

from .summarize import MAX_SENTENCES, Summary, as_markdown, summarize

_SHOWN, _SHOWN_SENTENCES, _SHOWN_CHARS = 10, 3, 240


def run(request: SkillRequest) -> SkillResult:
    """Summarise ``context.path``."""
    given = request.context.get("path") or request.answers.get("path")
    if not given:
        ask = Question(name="path", description="File or folder to summarize", type="path")
        return SkillResult(state=SkillState.INPUT_REQUIRED, summary="No file or folder was given.", questions=(ask,))
    place = place_at(str(given))
    if not place.exists():
        return SkillResult.failure(f"There is nothing at {place}. Give an existing path.")
    try:
        sentences = bounded(request, "sentences", 3, 1, MAX_SENTENCES)
        max_files = bounded(request, "max_files", 200, 1, 5_000)
    except ValueError as reason:
        return SkillResult.failure(f"{reason}.")
    digest = summarize(place, sentences=sentences, max_files=max_files)
    if not digest.summaries:
        return SkillResult.failure(f"There is no text file at {place}.{digest.left_out.sentence()}")
    kept = sum(len(summary.sentences) for summary in digest.summaries)
    words = sum(summary.words for summary in digest.summaries)
    where = f"{count_noun(words, 'word')} in {count_noun(len(digest.summaries), 'file')} of {place.name}"
    summary = f"{count_noun(kept, 'sentence')} out of {where}.{digest.left_out.sentence()}"
    data = as_markdown(digest).encode("utf-8", "replace")
    request.workdir.mkdir(parents=True, exist_ok=True)
    (request.workdir / "content_summary.md").write_bytes(data)
    artifact = Artifact(
        type="content_summary",
        name="content_summary.md",
        summary=summary,
        value={"common_terms": digest.common_terms(), "files": [_shortened(one) for one in digest.summaries[:_SHOWN]]},
        uri="workdir:content_summary.md",
        mime="text/markdown",
        size_bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
    )
    common = digest.common_terms()
    insights = (f"In common: {', '.join(common)}.",) if common else ()
    return SkillResult(summary=summary, artifacts=(artifact,), insights=insights, confidence=1.0)


def _shortened(summary: Summary) -> dict[str, object]:
    """Return a shortened entry of a file for the artifact's value, which is part of a document of bounded size."""
    sentences = [sentence[:_SHOWN_CHARS] for sentence in summary.sentences[:_SHOWN_SENTENCES]]
    return {"path": summary.path, "title": summary.title[:_SHOWN_CHARS], "sentences": sentences}


def place_at(given: str) -> Path:
    """Return the path, or the path of a ``file://`` URI."""
    return Path(unquote(urlsplit(given).path) if given.startswith("file://") else given).expanduser()


def bounded(request: SkillRequest, name: str, usual: int, low: int, high: int) -> int:
    """Return an integer of the context within bounds; raises ValueError with the allowed range."""
    value = request.context.get(name, usual)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"context.{name} is {value!r}; it must be a whole number from {low} to {high}")
    return value
