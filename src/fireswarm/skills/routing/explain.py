"""Explain for people why a skill was proposed: matching words, their fields, and deductions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fireswarm.skills.routing.index import Index
from fireswarm.skills.routing.query import Concept, Term
from fireswarm.storage.search.bm25 import saturate

MAX_MATCHES = 5
"""Number of matches named in a reason, strongest first."""

_SAID = {"use": "use when"}


def explain(
    fields: Mapping[str, frozenset[str]], number: int, asked: Sequence[Concept], index: Index, *, named: bool
) -> str:
    """Explain in one line: name match, the strongest matches with their fields, the number of others, exclusions.

    *fields* are the stems of the skill's fields, *number* is the skill's number in the index.
    """
    matches: list[tuple[float, str]] = []
    for concept in asked:
        worth, term = max(
            ((_worth(concept, term, number, index), term) for term in concept.terms), key=lambda pair: pair[0]
        )
        if worth > 0:
            matches.append((worth, _match(concept, term, fields)))
    matches.sort(key=lambda pair: (-pair[0], pair[1]))
    parts = ["named in the request"] if named else []
    parts += [f"{text} {worth:.1f}" for worth, text in matches[:MAX_MATCHES]]
    if len(matches) > MAX_MATCHES:
        parts.append(f"{len(matches) - MAX_MATCHES} weaker matches")
    against = sorted(
        concept.word
        for concept in asked
        if any(term.factor >= 1 and number in index.negative.get(term.key, ()) for term in concept.terms)
    )
    if against:
        parts.append(f"lower score, since its description excludes {', '.join(against)}")
    return "; ".join(parts) or "no matching words"


def _worth(concept: Concept, term: Term, number: int, index: Index) -> float:
    weight = index.postings[term.key].weight_in(number)
    return concept.weight * term.worth * saturate(weight)


def _match(concept: Concept, term: Term, fields: Mapping[str, frozenset[str]]) -> str:
    parts = term.key.split()
    places = [_SAID.get(name, name) for name, stems in fields.items() if all(part in stems for part in parts)]
    how = f" ({term.how})" if term.how and term.how != "phrase" else ""
    said = f'"{concept.word}"' if term.how == "phrase" else concept.word
    return f"{said}{how} in {', '.join(places) or 'body'}"
