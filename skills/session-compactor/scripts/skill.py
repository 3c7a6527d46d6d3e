"""Compact a session: a bounded summary of its results, and facts for later sessions."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from fireswarm import (
    MAX_DETAIL_CHARS,
    Artifact,
    SkillRequest,
    SkillResult,
    count_noun,
    format_counts,
    truncate,
)

from .learning import Change, asked, compare, known_before, learn
from .material import Sentence, all_artifacts, gather
from .summary import summarise

MAX_LINE_CHARS = 120

MOST_CHARS = 10_000
"""Maximum characters of a summary: other roles never get the whole history."""

_LISTED_CHANGES = 25


def run(request: SkillRequest) -> SkillResult:
    """Summarize the request's material and classify its facts as new, changed or confirmed."""
    artifacts = all_artifacts(request)
    if not artifacts and not request.signals and not request.children:
        summary = (
            "There is nothing to compact: the task has no artifact, signal or result. Let it depend on other tasks."
        )
        return SkillResult.failure(summary)
    changes = compare(learn(request), known_before(request))
    verdicts = Counter(change.verdict for change in changes)
    room = _room(request.context.get("max_chars"))
    head = _head(request, artifacts, changes)[:room]
    sentences = summarise(gather(request), asked(request), room - len(head) - 20)
    text = (head + _body(sentences))[:room]
    counts = format_counts((verdicts[name], f"{name} fact") for name in ("new", "changed", "confirmed")) or "no facts"
    summary = f"Compacted {count_noun(len(artifacts), 'artifact')} into {count_noun(len(text), 'character')}; {counts}."
    artifact = Artifact(type="session_summary", name="session summary", summary=summary, value=text, mime="text/plain")
    return SkillResult(
        summary=summary,
        artifacts=(artifact,),
        insights=tuple(_sentence(change) for change in changes if change.verdict == "changed")[:_LISTED_CHANGES],
        facts=tuple(change.fact for change in changes if change.verdict != "confirmed"),
        confidence=1.0,
    )


def _room(given: Any) -> int:
    return min(MOST_CHARS, given) if isinstance(given, int) and given >= 200 else MOST_CHARS


def _head(request: SkillRequest, artifacts: list[Artifact], changes: list[Change]) -> str:
    kinds = Counter(artifact.type for artifact in artifacts)
    lines = [
        f"Objective: {truncate(asked(request), MAX_DETAIL_CHARS)}",
        f"As of: {request.now.strftime('%Y-%m-%d %H:%M')} UTC",
        "Artifacts: " + ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())),
    ]
    changed = [change for change in changes if change.verdict == "changed"]
    if changed:
        lines.append("Changed since earlier runs:")
        lines += [f"- {_sentence(change)}" for change in changed[:_LISTED_CHANGES]]
    return "\n".join(lines) + "\n"


def _body(sentences: list[Sentence]) -> str:
    return "Findings:\n" + "\n".join(f"- {sentence.text}" for sentence in sentences) + "\n" if sentences else ""


def _sentence(change: Change) -> str:
    before = change.before.value if change.before is not None else None
    source = f" (known from {change.before.source})" if change.before is not None and change.before.source else ""
    return f"{change.fact.key}: {_short(before)} -> {_short(change.fact.value)}{source}"


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    return truncate(text, MAX_LINE_CHARS)
