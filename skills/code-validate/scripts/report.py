"""Report of a port: what is proven by replay, by which recorded inputs, and what is not, and why."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from fireswarm import count_noun, pipelines

from .results import case_name

PAGE = Path(__file__).parents[1] / "references" / "report.html.tmpl"

STATES = {
    "proven": "proven",
    "differs": "differs",
    "unproven": "not proven",
    "unread": "not read",
}
"""States of an operation, in the words of the report."""


def make_report(
    carried: pipelines.Carried, outcomes: Mapping[str, bool], mutants: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the report as data. *outcomes* says whether each test passed, *mutants* which changes the tests find."""
    schema = pipelines.load_schema(carried)
    node, recorded = None, dict[str, Any]()
    if pipelines.RECORDING in carried:
        text = carried.text(pipelines.RECORDING)
        node = pipelines.recorded_node(carried.json(pipelines.RECORDING))
        recorded = {"file": pipelines.RECORDING, "sha256": hashlib.sha256(text.encode()).hexdigest(), "node": node.file}
    keyed = pipelines.operation_keys(node) if node is not None else {}
    reasons = {each.name: each.reason for each in schema.unread if each.part == "operation"}
    parts = [each.model_dump() for each in schema.unread if each.part != "operation"]
    operations = [
        _report_operation(schema, operation, keyed.get(operation.key), reasons.pop(operation.key, ""), outcomes)
        for operation in schema.operations
    ]
    unread = [{"key": name, "state": "unread", "why": why} for name, why in sorted(reasons.items())]
    return {
        "node": schema.display_name or schema.name,
        "base_url": schema.base_url,
        "source_type": schema.source_type,
        "recording": recorded,
        "proven": sum(each["state"] == "proven" for each in operations),
        "present": len(operations) + len(unread),
        "operations": [*operations, *unread],
        "unread_parts": parts,
        "mutants": mutants,
    }


def _report_operation(
    schema: pipelines.NodeSchema, operation: Any, recorded: Any, silent: str, outcomes: Mapping[str, bool]
) -> dict[str, Any]:
    cases = [_report_case(operation.key, case, outcomes) for case in (recorded.cases if recorded is not None else ())]
    replayed = [case for case in cases if "passed" in case]
    passed = sum(case["passed"] for case in replayed)
    if not replayed:
        state, why = "unproven", silent or "there is no recording of it: its tests are made from the schema"
    elif passed < len(replayed):
        failed = f"{len(replayed) - passed:,} of {count_noun(len(replayed), 'input')}"
        state, why = "differs", f"for {failed}, requests or items are different, or the replay did not end"
    else:
        state, why = "proven", ""
    return {
        "key": operation.key,
        "state": state,
        "why": why,
        "name": operation.name,
        "request": f"{operation.method} {operation.path}".strip(),
        "written_by": "advisor" if schema.missing_of(operation) else "template",
        "unexplained": operation.unexplained,
        "passed": passed,
        "inputs": len(replayed),
        "left_out": recorded.left_out if recorded is not None else 0,
        "cases": cases,
    }


def _report_case(key: str, case: Any, outcomes: Mapping[str, bool]) -> dict[str, Any]:
    sent = [f"{request.method} {request.url}" for request in case.requests]
    told: dict[str, Any] = {"case": case.case, "sent": sent, "items": None if case.items is None else len(case.items)}
    if case.shows_file:
        return {**told, "error": "it sends name, type or size of a file, which no parameter has"}
    if case.error or not case.requests:
        return {**told, "error": case.error or "it sends nothing"}
    return {**told, "passed": outcomes.get(case_name(key, case.case), False)}


def render_html(report: Mapping[str, Any], result: str) -> str:
    """Return the report as one HTML page without scripts and without anything from elsewhere."""
    operations: Sequence[Mapping[str, Any]] = report["operations"]
    recording = report["recording"]
    by = f"the recording of {recording['node']} (sha256 {recording['sha256'][:16]})" if recording else "no recording"
    counts = {state: sum(each["state"] == state for each in operations) for state in STATES}
    bars = "".join(f'<i class="{state}" style="flex:{number}"></i>' for state, number in counts.items() if number)
    told = ", ".join(f"{number:,} {STATES[state]}" for state, number in counts.items() if number)
    return Template(PAGE.read_text(encoding="utf-8")).substitute(
        node=escape(str(report["node"])),
        proven=f"{report['proven']:,}",
        present=count_noun(report["present"], "operation"),
        bars=bars,
        told=escape(told),
        by=escape(by),
        result=escape(result),
        mutants=_render_mutants(report["mutants"]),
        base=escape(str(report["base_url"]) or "-"),
        operations="\n".join(_render_operation(each) for each in operations),
    )


def _render_mutants(mutants: Mapping[str, Any] | None) -> str:
    if mutants is None:
        return "not tried"
    told = f"the expectations find {mutants['killed']:,} of {count_noun(mutants['made'], 'change')} of the code"
    if mutants["made"] < mutants["possible"]:
        told += f" (a part of {mutants['possible']:,} possible ones)"
    lines = "".join(f"<li><code>{escape(each)}</code></li>" for each in mutants["alive"])
    return f"<details><summary>{told}</summary><p>Not found:</p><ul>{lines}</ul></details>" if lines else told


def _render_operation(operation: Mapping[str, Any]) -> str:
    state, key = operation["state"], escape(operation["key"])
    inputs = f"{operation['passed']:,} of {operation['inputs']:,}" if operation.get("inputs") else ""
    written = {"template": "by template", "advisor": "by advisor"}.get(str(operation.get("written_by")), "")
    why = escape(operation["why"] or operation.get("unexplained", ""))
    head = (
        f'<summary><b class="state {state}">{STATES[state]}</b><span class="key">{key}</span>'
        f'<code>{escape(operation.get("request", ""))}</code><span class="inputs">{inputs}</span>'
        f'<span class="by">{written}</span><span class="why">{why}</span></summary>'
    )
    cases = "".join(_render_case(case) for case in operation.get("cases", ()))
    left = operation.get("left_out", 0)
    more = (
        f"<p>{count_noun(left, 'further input')} recorded, but not kept: the recording was too large.</p>"
        if left
        else ""
    )
    inner = (
        f"<table><tr><th>input</th><th>replay</th><th>requests</th><th>items</th></tr>{cases}</table>" if cases else ""
    )
    return f"<details>{head}{inner}{more}</details>"


def _render_case(case: Mapping[str, Any]) -> str:
    if "passed" in case:
        told = '<td class="proven">same</td>' if case["passed"] else '<td class="differs">differs</td>'
    else:
        told = f'<td class="unproven">not replayed: {escape(case["error"])}</td>'
    sent = "<br>".join(f"<code>{escape(each)}</code>" for each in case["sent"])
    items = "" if case["items"] is None else f"{case['items']:,}"
    return f"<tr><td>{escape(case['case'])}</td>{told}<td>{sent}</td><td>{items}</td></tr>"
