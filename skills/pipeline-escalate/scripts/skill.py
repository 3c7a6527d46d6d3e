"""Report to a person the attempted fixes and the remaining failures, which are not retried forever."""

from __future__ import annotations

from collections.abc import Iterator

from fireswarm import SkillRequest, SkillResult, command_line, pipelines

MAX_LOG_CHARS = 12_000
ATTEMPTS = "fix_attempts.json"


def run(request: SkillRequest) -> SkillResult:
    """Return ``escalation_report.md``."""
    carried = pipelines.Carried.of(request)
    snapshot = carried.json("request_snapshot.json")
    result = carried.json("validation.json") if "validation.json" in carried else {}
    log = carried.text("validation_logs.txt")[-MAX_LOG_CHARS:] if "validation_logs.txt" in carried else "no log"
    why = str(request.context.get("why") or "the tests still fail")
    run_id = snapshot["correlation_id"]
    lines = [
        f"# Escalated: {snapshot['node_name']}",
        "",
        f"Run `{run_id}` stopped: {why}.",
        "",
        f"- requested: {snapshot['objective']}",
        f"- attempts to fix it: {request.context.get('attempts', 0)} of {request.limits.fix_loop_max}",
        f"- last result: {result.get('pytest', 'none')}",
        "",
        "## What to do",
        "",
        "Read the attempts and the last log below. Nothing was merged. Then do one of these:",
        "",
        "- Change the source or the documents, and go on with the files that the steps before have left:",
        f"  `{command_line('swarm', 'pipeline', 'resume', run_id, '--from', 'schema-infer')}`",
        "- Try further fixes, such as with another model for the advisor:",
        f"  `{command_line('swarm', 'pipeline', 'resume', run_id, '--from', 'code-fix')}`",
        "- Take the project as it is, and finish it by hand:",
        f"  `{command_line('swarm', 'artifacts', run_id)}`",
        "",
        f"The steps of the run: `{command_line('swarm', 'pipeline', 'show', run_id)}`. What it cost: `swarm cost`.",
        "",
        *_attempts(carried),
        "## Last log",
        "",
        *_quoted(log),
        "",
    ]
    carried.write("escalation_report.md", "\n".join(lines), why)
    return SkillResult(summary=f"escalated: {why}", artifacts=carried.artifacts())


def _attempts(carried: pipelines.Carried) -> Iterator[str]:
    for number, tried in enumerate(carried.json(ATTEMPTS) if ATTEMPTS in carried else [], 1):
        yield from (f"## Attempt {number}", "", "The log before it:", "", *_quoted(tried["log"]), "")
        yield from ("The advisor's answer:", "", *_quoted(tried["answer"]), "")
        yield from ("Its patch:", "", *_quoted(tried["patch"]), "")


def _quoted(text: str) -> list[str]:
    """Return the lines of a block of code: nothing in it is a heading or a link."""
    return [f"    {line}" for line in text.splitlines()] or ["    (empty)"]
