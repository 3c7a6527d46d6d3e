"""Recall: rank the stored facts against the objective, and name their sources."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from typing import Any

from fireswarm import (
    Artifact,
    Fact,
    SkillRequest,
    SkillResult,
    count_noun,
    truncate,
)

from .ranking import rank

MAX_LINE_CHARS = 120

MOST_FACTS = 60
MOST_BYTES = 12_000
"""Maximum bytes of the recalled facts in a document: payloads of 16 KiB or more go to the blob store."""


def run(request: SkillRequest) -> SkillResult:
    """Recall what earlier tasks of this session learned about the objective's folder or file."""
    bucket = str(request.context.get("bucket") or "")
    query = " ".join([request.objective, *_keywords(request.context.get("keywords"))])
    earlier = [fact for fact in _newest(request.facts) if fact.source != request.task_id]
    ranked = [(score, fact) for score, fact in rank(earlier, query, bucket) if score > 0]
    kept = _bounded(ranked, _limit(request.context.get("limit")))
    value = {
        "bucket": bucket,
        "facts": [entry for entry, _ in kept],
        "considered": len(earlier),
        "sources": dict(sorted(Counter(fact.source or "unknown" for _, fact in kept).items())),
    }
    facts = [fact for _, fact in kept]
    summary = _summary(facts, bucket, str(request.context.get("path") or ""))
    artifact = Artifact(type="recalled_facts", name="recalled facts", summary=summary, value=value)
    return SkillResult(
        summary=summary,
        artifacts=(artifact,),
        insights=_insights(facts, len(earlier), bucket),
        confidence=round(sum(fact.confidence for fact in facts) / len(facts), 4) if facts else 1.0,
    )


def _keywords(given: Any) -> list[str]:
    if isinstance(given, str):
        return [given]
    return [str(word) for word in given] if isinstance(given, list | tuple) else []


def _limit(given: Any) -> int:
    return min(MOST_FACTS, given) if isinstance(given, int) and given > 0 else MOST_FACTS


def _newest(facts: tuple[Fact, ...]) -> list[Fact]:
    """Return one fact for each bucket and key: the one learned last."""
    newest: dict[tuple[str, str], Fact] = {}
    for fact in sorted(facts, key=lambda fact: (_when(fact), fact.source)):
        newest[fact.bucket, fact.key] = fact
    return list(newest.values())


def _bounded(ranked: list[tuple[float, Fact]], most: int) -> list[tuple[dict[str, Any], Fact]]:
    kept: list[tuple[dict[str, Any], Fact]] = []
    size = 0
    for score, fact in ranked[:most]:
        entry = fact.model_dump(mode="json", include={"bucket", "key", "value", "source", "confidence", "learned_at"})
        entry["score"] = score
        size += len(json.dumps(entry, ensure_ascii=False).encode())
        if size > MOST_BYTES:
            break
        kept.append((entry, fact))
    return kept


def _summary(facts: list[Fact], bucket: str, path: str) -> str:
    about = path.rstrip("/").rsplit("/", 1)[-1] if path else "this subject"
    if bucket and not any(fact.bucket == bucket for fact in facts):
        first = f"This is the first objective on {about} in this session: nothing was learned about it before."
        return first if not facts else f"{first} {count_noun(len(facts), 'fact')} about other things may help."
    if not facts:
        return "Nothing was recalled: no earlier fact shares a word with this objective."
    sources = Counter(fact.source or "an unknown source" for fact in facts)
    told = ", ".join(f"{count} from {source}" for source, count in sources.most_common(4))
    more = f" and {len(sources) - 4} more" if len(sources) > 4 else ""
    times = [fact.learned_at for fact in facts if fact.learned_at is not None]
    last = f", last learned {max(times).strftime('%Y-%m-%d %H:%M')} UTC" if times else ""
    return f"Recalled {count_noun(len(facts), 'fact')} about {about}: {told}{more}{last}."


def _insights(facts: list[Fact], considered: int, bucket: str) -> tuple[str, ...]:
    found = [f"Considered {count_noun(considered, 'fact')}, selected {len(facts):,}."]
    elsewhere = sum(fact.bucket != bucket for fact in facts) if bucket else 0
    if elsewhere:
        found.append(f"About other folders or files: {elsewhere:,} of them.")
    found.extend(f"{fact.key} was {_short(fact.value)} ({fact.source or 'unknown'})" for fact in facts[:5])
    return tuple(found)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    return truncate(text, MAX_LINE_CHARS)


def _when(fact: Fact) -> float:
    learned: datetime | None = fact.learned_at
    return learned.timestamp() if learned is not None else 0.0
