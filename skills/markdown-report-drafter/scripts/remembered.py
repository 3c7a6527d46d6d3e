"""Findings of earlier runs, and changes since then."""

from __future__ import annotations

import math
from typing import Any

from fireswarm import SkillRequest, count_noun, format_change, format_extent

from .markdown import brief, bullets, code, escaped, inline, table
from .sources import Source, of_type

_SHOWN = 25
_UNCHANGED_SHOWN = 12


def remembered_section(request: SkillRequest, sources: list[Source]) -> tuple[str, list[str]]:
    """Return the section, and one sentence for each changed figure for the summary."""
    recalled = of_type(sources, "recalled_facts")
    facts = _recalled(request, recalled)
    cite = recalled.cite if recalled is not None else "(facts passed to this task)"
    title = "## What earlier runs learned"
    if not facts:
        return "", []
    now = _current(sources)
    told = [fact for fact in facts if not _is_prose(fact)]
    compared = [(fact, now.get((fact["bucket"], fact["key"]))) for fact in told]
    moved = [(fact, known) for fact, known in compared if known and change_of(fact["value"], known[0]) != "same"]
    same = [
        fact for fact, known in compared if known and change_of(fact["value"], known[0]) == "same" and fact["value"]
    ]
    unmeasured = [fact for fact, known in compared if known is None]
    summary = recalled.artifact.summary if recalled is not None else f"Passed in: {count_noun(len(facts), 'fact')}."
    parts = [title, f"{inline(summary)} {cite}"]
    if moved:
        rows = [_row(fact, known) for fact, known in moved[:_SHOWN]]
        header = ["What", "Then", "Now", "Change", "Learned by"]
        parts += [f"### What changed since ({format_extent(len(moved), len(told))}) {cite}", table(header, rows)]
    if same:
        parts.append(_listed("Unchanged", same, cite))
    if unmeasured:
        parts.append(_listed("Not measured this time", unmeasured, cite))
    earlier = [fact for fact in facts if _is_prose(fact)]
    if earlier:
        parts += [f"### What was asked before {cite}", bullets(_asked(fact) for fact in earlier[:_UNCHANGED_SHOWN])]
    sentences = [_sentence(fact, known[0], f"{cite}{known[1].cite}") for fact, known in moved]
    return "\n\n".join(parts), sentences


def change_of(before: Any, now: Any) -> str:
    """Describe the change of a value: a signed difference with its share for numbers, otherwise a word."""
    if isinstance(before, bool) or isinstance(now, bool):
        return "same" if before is now else "changed"
    if isinstance(before, int | float) and isinstance(now, int | float):
        if math.isclose(before, now, rel_tol=1e-9, abs_tol=1e-12):
            return "same"
        return format_change(before, now)
    if isinstance(before, list | tuple) and isinstance(now, list | tuple):
        added = [str(entry) for entry in now if entry not in before]
        removed = [str(entry) for entry in before if entry not in now]
        if not added and not removed:
            return "same" if list(before) == list(now) else "reordered"
        parts = {"new": added, "gone": removed}
        return "; ".join(f"{name}: {', '.join(entries)}" for name, entries in parts.items() if entries)
    return "same" if before == now else "changed"


def _is_prose(fact: dict[str, Any]) -> bool:
    """Return True if a fact is about an earlier run and not about the subject."""
    return str(fact["key"]).startswith(("objective:", "last_"))


def _name(fact: dict[str, Any]) -> str:
    return inline(str(fact["key"]).replace("_", " "))


def _row(fact: dict[str, Any], known: tuple[Any, Source]) -> list[str]:
    value, source = known
    learned = str(fact.get("learned_at") or "")[:10]
    by = " ".join(part for part in (code(fact.get("source") or ""), inline(learned)) if part)
    change = escaped(change_of(fact["value"], value))
    return [_name(fact), brief(fact["value"]), f"{brief(value)} {source.cite}", change, by or "-"]


def _sentence(fact: dict[str, Any], value: Any, cite: str) -> str:
    return f"{_name(fact)}: {brief(fact['value'], 50)} → {brief(value, 50)} {cite}"


def _listed(title: str, facts: list[dict[str, Any]], cite: str) -> str:
    shown = "; ".join(f"{_name(fact)} {brief(fact['value'], 50)}" for fact in facts[:_UNCHANGED_SHOWN])
    more = f"; and {len(facts) - _UNCHANGED_SHOWN:,} more" if len(facts) > _UNCHANGED_SHOWN else ""
    return f"{title} ({len(facts)}): {shown}{more}. {cite}"


def _asked(fact: dict[str, Any]) -> str:
    value = fact["value"]
    by = f"{code(fact.get('source') or 'unknown')} {inline(str(fact.get('learned_at') or '')[:10])}".strip()
    if isinstance(value, dict):
        return f"{by}: {inline(value.get('objective', ''))} {inline(value.get('outcome', ''))}".rstrip()
    return f"{by}: {inline(value)}"


def _recalled(request: SkillRequest, recalled: Source | None) -> list[dict[str, Any]]:
    if recalled is not None:
        return [fact for fact in recalled.content.get("facts", []) if isinstance(fact, dict)]
    return [
        {
            "bucket": fact.bucket,
            "key": fact.key,
            "value": fact.value,
            "source": fact.source,
            "learned_at": fact.learned_at.isoformat() if fact.learned_at else "",
        }
        for fact in request.facts
    ]


def _current(sources: list[Source]) -> dict[tuple[str, str], tuple[Any, Source]]:
    """Return the facts stated by the given artifacts, by bucket and key."""
    found: dict[tuple[str, str], tuple[Any, Source]] = {}
    for source in sources:
        if source.artifact.type != "recalled_facts":
            for fact in source.content.get("facts", []):
                if isinstance(fact, dict) and {"bucket", "key", "value"} <= set(fact):
                    found[fact["bucket"], fact["key"]] = (fact["value"], source)
    return found
