"""Report what of a new CSV file departs from its contract, as the tested validator finds it."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fireswarm import SkillRequest, SkillResult, count_noun, errors, pipelines, read_regular_file

MAX_REPORT_BYTES = 20_000_000
CANNOT_READ = 2
"""Exit code of the validator for a file that it cannot read."""

MAX_NAMED = 3


def run(request: SkillRequest) -> SkillResult:
    """Return ``drift_report.json`` and ``drift_report.md``; without data, these say that nothing was compared."""
    carried = pipelines.Carried.of(request)
    result = carried.json("validation.json")
    if not result["passed"]:
        return SkillResult.failure(
            f"the tests of the validator do not pass ({result['pytest']}): see validation_logs.txt of the step before"
        )
    snapshot = carried.json("request_snapshot.json")
    report: dict[str, Any] = {"file": "", "rows": 0, "keeps": True, "findings": []}
    told = f"a tested validator of {snapshot['node_name']}; no file was compared"
    if "data" in snapshot:
        try:
            report = _compare(carried, request, snapshot["data"]["name"])
        except errors.InvalidInput as error:
            return SkillResult.failure(str(error))
        told = _summary(report)
    carried.write_json("drift_report.json", report, told)
    carried.write("drift_report.md", "\n".join([f"# {told}", "", *_table(report)]), told)
    return SkillResult(summary=told, artifacts=carried.artifacts(), confidence=1.0)


def _compare(carried: pipelines.Carried, request: SkillRequest, name: str) -> dict[str, Any]:
    """Let the validator compare the data, confined. Raises InvalidInput if it cannot, and SandboxRefused."""
    content = pipelines.read_unchanged(carried, "data")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "project"
        pipelines.lay_out(carried.tree(pipelines.PROJECT), folder)
        (folder / "data.csv").write_bytes(content)
        command = [sys.executable, "-B", "validator.py", "data.csv", "--report", "report.json"]
        command = [str(folder / word) if "." in word and "/" not in word else word for word in command]
        view = pipelines.View(folder, writable=True, protects=False)
        seconds, confinement = request.limits.default_timeout_seconds, request.limits.confinement
        environment = {"PATH": os.environ.get("PATH", "")}
        code, told = pipelines.run_confined(command, view, environment, seconds, confinement=confinement)
        if code == CANNOT_READ:
            raise errors.InvalidInput(told.strip().replace("data.csv", name))
        try:
            report = json.loads(read_regular_file(folder / "report.json", MAX_REPORT_BYTES, follow=False))
        except (OSError, ValueError) as error:
            raise errors.InvalidInput(f"the validator did not end (exit code {code}): {told.strip()[-500:]}") from error
    return {**report, "file": name}


def _summary(report: Mapping[str, Any]) -> str:
    head = f"{report['file']}: {count_noun(report['rows'], 'row')}"
    if report["keeps"]:
        return f"{head}, keeps the contract"
    found = report["findings"]
    named = ", ".join(f"{each['code']} {each['column']} ({each['count']:,})" for each in found[:MAX_NAMED])
    more = f" and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
    return f"{head}, departs from the contract: {named}{more}"


def _table(report: Mapping[str, Any]) -> list[str]:
    """Return the findings as a table of Markdown."""
    rows = [
        f"| {each['code']} | {_escape(each['column'])} | {each['count']:,} | {_escape(each['what'])} | "
        + ", ".join(f"line {one['line']}: {_escape(one['value']) or '(empty)'}" for one in each["examples"])
        + " |"
        for each in report["findings"]
    ]
    head = ["| departure | column | count | meaning | first lines |", "| --- | --- | --- | --- | --- |"]
    return [*head, *rows, ""] if rows else ["No departure was found.", ""]


def _escape(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
