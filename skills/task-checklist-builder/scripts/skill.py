"""Entry of the skill: read the request, collect the tasks, and return one artifact."""

from __future__ import annotations

import hashlib
from pathlib import Path
from urllib.parse import unquote, urlsplit

from fireswarm import Artifact, Question, SkillRequest, SkillResult, SkillState, count_noun

from .build_checklist import as_json, as_markdown, build, of_them_urgent

_SHOWN = 30


def run(request: SkillRequest) -> SkillResult:
    """Collect the open tasks in ``context.path``."""
    given = request.context.get("path") or request.answers.get("path")
    if not given:
        ask = Question(name="path", description="Folder or file to collect open tasks from", type="path")
        return SkillResult(state=SkillState.INPUT_REQUIRED, summary="No folder was given.", questions=(ask,))
    place = Path(unquote(urlsplit(str(given)).path) if str(given).startswith("file://") else str(given)).expanduser()
    if not place.exists():
        return SkillResult.failure(f"There is nothing at {place}. Give an existing path.")
    found = build(place, include_done=request.context.get("include_done") is True)
    content = as_json(found)
    counts: dict[str, int] = content["counts"]
    still = sum(counts.values()) - counts["done"]
    having = len({task.path for task in found.tasks if task.urgency != "done"})
    where = f"{having:,} of {count_noun(found.read, 'file')} of {place.name}"
    summary = f"{count_noun(still, 'open task')}{of_them_urgent(counts['urgent'])}, in {where}."
    if not still:
        summary = f"Nothing is open in {count_noun(found.read, 'file')} of {place.name}."
    if found.beyond:
        summary += f" Not listed: {count_noun(found.beyond, 'further task')}."
    summary += found.left_out.sentence()
    data = as_markdown(found, str(request.context.get("title") or "Checklist")).encode("utf-8", "replace")
    request.workdir.mkdir(parents=True, exist_ok=True)
    (request.workdir / "checklist.md").write_bytes(data)
    artifact = Artifact(
        type="checklist",
        name="checklist.md",
        summary=summary,
        value={"counts": counts, "tasks": content["tasks"][:_SHOWN]},
        uri="workdir:checklist.md",
        mime="text/markdown",
        size_bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
    )
    owners = sorted({task.owner for task in found.tasks if task.owner})
    dates = sorted(task.due for task in found.tasks if task.due)
    insights = [] if still else ["Nothing is open."]
    if counts["urgent"]:
        insights.append(f"Urgent: {counts['urgent']:,} of {still:,}.")
    if owners:
        insights.append(f"Named: {', '.join(owners[:20])}.")
    if dates:
        insights.append(f"The first date is {dates[0]}.")
    first = tuple(f"{task.text} ({task.path}:{task.line})" for task in found.of("urgent")[:3])
    return SkillResult(
        summary=summary,
        artifacts=(artifact,),
        insights=tuple(insights),
        confidence=1.0,
        next_recommended_actions=first,
    )
