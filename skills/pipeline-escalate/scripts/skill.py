"""Report to a person the attempted fixes and the remaining failures, which are not retried forever."""

from __future__ import annotations

from fireswarm import SkillRequest, SkillResult, pipelines

MAX_LOG_CHARS = 12_000


def run(request: SkillRequest) -> SkillResult:
    """Return ``escalation_report.md``."""
    carried = pipelines.Carried.of(request)
    snapshot = carried.json("request_snapshot.json")
    result = carried.json("validation.json") if "validation.json" in carried else {}
    log = carried.text("validation_logs.txt")[-MAX_LOG_CHARS:] if "validation_logs.txt" in carried else "no log"
    why = str(request.context.get("why") or "the tests still fail")
    lines = [
        f"# Escalated: {snapshot['node_name']}",
        "",
        f"Run `{snapshot['correlation_id']}` stopped: {why}.",
        "",
        f"- requested: {snapshot['objective']}",
        f"- attempts to fix it: {request.context.get('attempts', 0)} of {request.limits.fix_loop_max}",
        f"- last result: {result.get('pytest', 'none')}",
        "",
        "## What to do",
        "",
        "Read `diff.patch` and the log below. Fix the source or the documents and submit the pipeline again, or",
        "take the project as it is and finish it by hand. Nothing was merged.",
        "",
        "## Log",
        "",
        *(f"    {line}" for line in log.splitlines()),
        "",
    ]
    carried.write("escalation_report.md", "\n".join(lines), why)
    return SkillResult(summary=f"escalated: {why}", artifacts=carried.artifacts())
