"""Extract facts from artifacts, and compare them with earlier facts."""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass
from typing import Any

from fireswarm import MAX_DETAIL_CHARS, Artifact, Fact, SkillRequest, truncate

from .material import all_artifacts, loaded

MAX_BUCKET_CHARS = 100
MAX_KEY_CHARS = 255

MOST_FACTS = 60
SAME_WITHIN = 1e-9
_WORD = re.compile(r"[^\W\d_][^\W_]{3,}")


@dataclass(frozen=True)
class Change:
    """Facts compared with those known before: ``new``, ``changed`` or ``confirmed``."""

    verdict: str
    fact: Fact
    before: Fact | None


def learn(request: SkillRequest) -> list[Fact]:
    """Return the facts in this session's artifacts, one for each bucket and key, at most :data:`MOST_FACTS`."""
    bucket = str(request.context.get("bucket") or f"session:{request.session_hash}"[:MAX_BUCKET_CHARS])
    found: dict[tuple[str, str], Fact] = {}
    for artifact in all_artifacts(request):
        if artifact.type == "recalled_facts":
            continue
        for key, value, where in _statements(artifact, bucket):
            source = artifact.source_task_id or request.task_id
            found[where, key] = Fact(
                bucket=where,
                key=key,
                value=value,
                keywords=keywords_for(request, key, where),
                source=source,
                learned_at=request.now,
            )
    outcome = next((a.summary for a in all_artifacts(request) if a.type == "report" and a.summary), "")
    name = "objective:" + hashlib.sha256(asked(request).encode()).hexdigest()[:12]
    value = {"objective": truncate(asked(request), MAX_DETAIL_CHARS), "outcome": truncate(outcome, MAX_DETAIL_CHARS)}
    found[bucket, name] = Fact(
        bucket=bucket,
        key=name,
        value=value,
        keywords=keywords_for(request, "objective", bucket),
        source=request.task_id,
        learned_at=request.now,
    )
    return list(found.values())[:MOST_FACTS]


def asked(request: SkillRequest) -> str:
    """Return the operator's objective, without the prefix that the plan added."""
    _, marker, rest = request.objective.partition("while answering: ")
    return " ".join((rest if marker else request.objective).split())


def known_before(request: SkillRequest) -> dict[tuple[str, str], Fact]:
    """Return facts from before this session's work: recalled ones first, then facts that this work did not write."""
    own = {artifact.source_task_id for artifact in all_artifacts(request)} | {request.task_id}
    known: dict[tuple[str, str], Fact] = {}
    for fact in request.facts:
        if fact.source not in own:
            known[fact.bucket, fact.key] = fact
    for artifact in all_artifacts(request):
        content = loaded(artifact) if artifact.type == "recalled_facts" else None
        for entry in content.get("facts", []) if isinstance(content, dict) else []:
            fields = {name: entry[name] for name in ("bucket", "key", "value", "source", "learned_at") if name in entry}
            fact = Fact.model_validate(fields)
            known[fact.bucket, fact.key] = fact
    return known


def compare(facts: list[Fact], known: dict[tuple[str, str], Fact]) -> list[Change]:
    """Compare each fact with the earlier facts."""
    changes: list[Change] = []
    for fact in facts:
        before = known.get((fact.bucket, fact.key))
        if before is None:
            changes.append(Change("new", fact, None))
        else:
            changes.append(Change("confirmed" if same(before.value, fact.value) else "changed", fact, before))
    return changes


def same(one: Any, other: Any) -> bool:
    """Return True if two JSON values are equal; numbers may differ by rounding."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=SAME_WITHIN, abs_tol=SAME_WITHIN)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return one == other


def keywords_for(request: SkillRequest, key: str, bucket: str) -> tuple[str, ...]:
    """Return words for recalling a fact: its bucket, parts of its key, the plan's keywords, the objective's words."""
    given = request.context.get("keywords")
    listed = [str(word).lower() for word in given] if isinstance(given, list | tuple) else []
    path = str(request.context.get("path") or "").rstrip("/").rsplit("/", 1)[-1].lower()
    words = [bucket, *re.split(r"[_:.]+", key.lower()), path, *listed, *_WORD.findall(asked(request).lower())]
    return tuple(dict.fromkeys(word for word in words if word))[:20]


def _statements(artifact: Artifact, bucket: str) -> list[tuple[str, Any, str]]:
    """Return ``(key, value, bucket)`` for each statement of an artifact: its ``facts``, or a few figures by type."""
    content = artifact.value if isinstance(artifact.value, dict) else loaded(artifact)
    if not isinstance(content, dict):
        content = {}
    stated = [
        (str(entry["key"])[:MAX_KEY_CHARS], entry["value"], str(entry.get("bucket") or bucket)[:MAX_BUCKET_CHARS])
        for entry in content.get("facts", [])
        if isinstance(entry, dict) and "key" in entry and "value" in entry
    ]
    if artifact.type in {"report", "checklist"} and artifact.summary:
        stated.append((f"last_{artifact.type}", truncate(artifact.summary, MAX_DETAIL_CHARS), bucket))
    return stated
