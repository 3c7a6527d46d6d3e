"""Evidence of an advised schema: a quote contains what it is to show, and stands at its lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fireswarm.contracts.skills.advice import AdviceKind, AdviceRequest, Material
from fireswarm.pipelines import check_advice
from fireswarm.pipelines.files import SOURCES
from fireswarm.pipelines.node.schema import NodeSchema

DOCUMENT = """# Widget API

Some words about how to use our http api. Call us.

Base address: https://api.widget.example

Explode a widget with DELETE: the path is /widgets/:id/everything
"""
ASKS = AdviceRequest(
    kind=AdviceKind.SCHEMA, question="?", material=(Material(name=f"{SOURCES}widget.md", text=DOCUMENT),)
)
Entry = Callable[[str], dict[str, Any]]


def quoted(quote: str, first: int, last: int = 0, file: str = "widget.md") -> dict[str, Any]:
    piece = {"file": file, "line_start": first, "line_end": last or first, "quote": quote}
    return {"kind": "EVIDENCE", "evidence": [piece]}


CALL = quoted("Explode a widget with DELETE: the path is /widgets/:id/everything", 7)
HOST = quoted("https://api.widget.example", 5)


def honest(field: str) -> dict[str, Any]:
    return HOST if field == "base_url" else quoted("# Widget API", 1) if field == "name" else CALL


def advise(entry_of: Entry, **operation: Any) -> str:
    """Give advice whose fields have the entries of *entry_of*; returns its faults."""
    call = {"key": "widget.explode", "resource": "widget", "method": "DELETE", "path": "/widgets/{id}/everything"}
    inferred = {
        "name": "widget",
        "source_type": "TYPE2",
        "base_url": "https://api.widget.example",
        "operations": [{**call, **operation}],
        "parameters": [{"name": "id", "kind": "string", "operations": ["widget.explode"], "place": "path"}],
    }
    fields = {name: entry_of(name) for name in NodeSchema.model_validate(inferred).fields()}
    return check_advice(ASKS, {"inferred": inferred, "trace": {"fields": fields}})


def test_quotes_that_contain_the_values_are_accepted() -> None:
    assert advise(honest) == ""


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        (quoted("", 1), "shows nothing"),
        (quoted(" ", 2), "shows nothing"),
        (quoted("", 7), "shows nothing"),
        (quoted("A", 1), "shows nothing"),
        (quoted("- {", 1), "shows nothing"),
        (quoted("Some words about how to use our http api. Call us.", 3), "no quote contains"),
        (quoted("DELETE /widgets/:id/everything", 7), "is not in widget.md"),
        (quoted("DELETE: the path is /widgets/:id/everything", 3), "is not in widget.md"),
        (quoted("Widget", 1, 99), "has 7 lines"),
        (quoted("root", 1, file="../../etc/passwd"), "is not in the source bundle"),
        ({"kind": "EVIDENCE", "evidence": []}, "no evidence"),
        ({"kind": "ASSUMPTION", "rationale": " "}, "needs a rationale"),
    ],
)
def test_quote_that_does_not_show_its_field_is_refused(entry: dict[str, Any], fault: str) -> None:
    assert fault in advise(lambda field: entry if field.startswith("operations") else honest(field))


@pytest.mark.parametrize(
    ("operation", "missing"),
    [
        ({"method": "POST"}, "POST"),
        ({"path": "/widgets/{id}/all"}, "all"),
        ({"path": "/widgets/{id}/every"}, "every"),
        ({"path": "/pay/{id}/everything"}, "pay"),
    ],
)
def test_invented_request_is_refused(operation: dict[str, Any], missing: str) -> None:
    assert f"no quote contains {missing}:" in advise(honest, **operation)


def test_schema_of_assumptions_is_refused() -> None:
    assert "3 of 4 fields are assumptions" in advise(lambda _: {"kind": "ASSUMPTION", "rationale": "usual"})


def test_part_of_another_word_is_no_evidence_of_a_name() -> None:
    faults = advise(lambda field: quoted("Widget", 1) if field.startswith("parameters") else honest(field))
    assert "parameters.id@widget.explode: no quote contains id" in faults


def test_several_quotes_show_a_field_together() -> None:
    pieces = [quoted("DELETE", 7), quoted("/widgets/:id/everything", 7)]
    both = {"kind": "EVIDENCE", "evidence": [piece["evidence"][0] for piece in pieces]}
    assert advise(lambda field: both if field.startswith("operations") else honest(field)) == ""
    assert "no quote contains DELETE" in advise(
        lambda field: pieces[1] if field.startswith("operations") else honest(field)
    )


def test_host_is_shown() -> None:
    assert "base_url: no quote contains api.widget.example" in advise(lambda field: CALL)
