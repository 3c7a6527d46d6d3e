"""Trace maps: each field of an inferred schema cites lines of its source, or is an assumption with a rationale."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from fireswarm.contracts.skills.advice import Evidence, TraceEntry, TraceMap

MAX_ASSUMPTION_SHARE = 0.30
"""Maximum share of a schema's fields that may be assumptions."""

_EPSILON = 1e-9
_TELLING = re.compile(r"\w\W*\w")
"""A quote of one letter, or of brackets, shows nothing."""


def is_telling(text: str) -> bool:
    """Return True for a text that may be evidence: it has two letters or digits."""
    return _TELLING.search(text) is not None


def trace_faults(trace: TraceMap, fields: Iterable[str], sources: Mapping[str, str] | None = None) -> list[str]:
    """Return the faults of *trace* for a schema with *fields*, or an empty list.

    The name of the node is not counted as an assumption: it is that of the request. With *sources* (text by path in the
    bundle) each piece of evidence is checked: the lines must exist and contain its quote, which must not be empty.
    """
    wanted = list(dict.fromkeys(fields))
    faults = [
        f"{name}: no entry; add evidence, or ASSUMPTION with a rationale" for name in wanted if name not in trace.fields
    ]
    known = set(wanted)
    faults += [f"{name}: the schema has no such field" for name in trace.fields if name not in known]
    assumed = 0
    lines = {file: text.splitlines() for file, text in (sources or {}).items()}
    for name, entry in trace.fields.items():
        if entry.kind == "ASSUMPTION":
            assumed += name != "name"
            if not entry.rationale.strip():
                faults.append(f"{name}: an assumption needs a rationale")
        elif not entry.evidence:
            faults.append(f"{name}: no evidence; add it, or mark the entry as ASSUMPTION")
        for piece in entry.evidence:
            if sources is not None and (fault := _evidence_fault(piece, lines)):
                faults.append(f"{name}: {fault}")
    if wanted and assumed / len(wanted) > MAX_ASSUMPTION_SHARE + _EPSILON:
        faults.append(
            f"{assumed} of {len(wanted)} fields are assumptions; at most {MAX_ASSUMPTION_SHARE:.0%} are allowed"
        )
    return faults


def _evidence_fault(piece: Evidence, sources: Mapping[str, list[str]]) -> str:
    if piece.file not in sources:
        return f"{piece.file} is not in the source bundle ({', '.join(sorted(sources)) or 'empty'})"
    lines = sources[piece.file]
    if piece.line_end < piece.line_start or piece.line_end > len(lines):
        return f"{piece.file} has {len(lines)} lines, not {piece.line_start} to {piece.line_end}"
    if not is_telling(piece.quote):
        return f"the quote {piece.quote[:60]!r} shows nothing: quote the words of the line word for word"
    cited = " ".join("\n".join(lines[piece.line_start - 1 : piece.line_end]).split())
    if " ".join(piece.quote.split()) not in cited:
        return f"{piece.quote[:60]!r} is not in {piece.file}, lines {piece.line_start} to {piece.line_end}"
    return ""


def unquoted_values(trace: TraceMap, values: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the faults of evidence whose quotes do not contain what they are to show: the *values* of each field."""
    faults: list[str] = []
    for name, wanted in values.items():
        entry = trace.fields.get(name)
        if entry is None or entry.kind == "ASSUMPTION":
            continue
        if missing := [value for value in wanted if not _is_quoted(value, entry)]:
            told = ", ".join(missing)
            faults.append(f"{name}: no quote contains {told}: quote the line that does, or mark it as ASSUMPTION")
    return faults


def _is_quoted(value: str, entry: TraceEntry) -> bool:
    whole = re.compile(rf"(?<!\w){re.escape(value)}(?!\w)", re.IGNORECASE)
    return any(whole.search(piece.quote) for piece in entry.evidence)
