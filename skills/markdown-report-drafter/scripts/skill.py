"""Draft ``report.md`` from artifacts, signals and facts; every statement names its source."""

from __future__ import annotations

import hashlib
from collections import Counter

from fireswarm import (
    MAX_DETAIL_CHARS,
    Artifact,
    Signal,
    SkillRequest,
    SkillResult,
    count_noun,
    format_extent,
    format_score,
    truncate,
)

from .chart import MISSING_EXTRA, draw
from .folder import inventory_section, left_out_of, noticed_section, risk_section
from .markdown import bullets, code, inline, table
from .notes import checklist, notes_section
from .remembered import remembered_section
from .sources import Source, collect, of_type, sources_table
from .table_report import csv_section

SUBJECTS = ("inventory", "risk_scores", "csv_forecast")
NOT_ANSWERED = (
    "**This report does not answer the objective**: that needs a model. It describes the folder or file that was given."
)
_SIGNALS, _SIGNALS_A_NAME, _CHANGES = 12, 3, 6


def run(request: SkillRequest) -> SkillResult:
    """Write the report, its chart, and for notes a checklist."""
    sources = collect(request)
    if not any(source.artifact.type in SUBJECTS and source.content for source in sources):
        summary = (
            "There is nothing to report on: the task has no inventory, risk_scores or csv_forecast artifact. Let "
            "this task depend on the tasks that produce them."
        )
        return SkillResult.failure(summary)
    kind = kind_of(request, sources)
    title = str(request.context.get("title") or "Report")
    artifacts: list[Artifact] = []
    insights: list[str] = []
    figure = _chart(request, sources, kind, artifacts, insights)
    remembered, changes = remembered_section(request, sources)
    listed = _checklist(request, sources, kind, title, artifacts)
    text = _compose(request, sources, kind, title, figure, remembered, changes)
    summary = f"{title}: {count_noun(len(text.split()), 'word')} from {count_noun(len(sources), 'source')}"
    summary += f", {count_noun(len(changes), 'change')} since earlier runs" if changes else ""
    if listed is not None:
        summary += (
            f", {count_noun(listed, 'open point')} in checklist.md" if listed else ", nothing open in checklist.md"
        )
    report = written(request, "report", "report.md", text.encode(), "text/markdown", f"{summary}.")
    not_answered = request.context.get("not_answered")
    return SkillResult(
        summary=f"{summary}.",
        artifacts=(report, *artifacts),
        insights=(*insights, *(f"Changed: {change}" for change in changes[:_CHANGES])),
        confidence=0.1 if not_answered is True else 0.5 if not_answered else 1.0,
        next_recommended_actions=tuple(action for action, _ in next_actions(sources)),
    )


def _not_answered(request: SkillRequest) -> str:
    """Return the first line of a report that does not answer all of the objective, or ""."""
    given = request.context.get("not_answered")
    if isinstance(given, str) and given:
        return f"**This report leaves a part of the objective undone**, because it needs a model: {inline(given)}."
    return NOT_ANSWERED if given is True else ""


def asked(objective: str) -> str:
    """Return the operator's words, without the prefix that the plan added."""
    return objective.split("answers: ", 1)[-1].split("that answer: ", 1)[-1]


def kind_of(request: SkillRequest, sources: list[Source]) -> str:
    """Return the kind of report, from the context or the artifacts."""
    kind = request.context.get("kind")
    if kind in {"folder", "csv", "notes"}:
        return str(kind)
    return "csv" if of_type(sources, "csv_forecast") is not None else "folder"


def _compose(
    request: SkillRequest,
    sources: list[Source],
    kind: str,
    title: str,
    figure: str,
    remembered: str,
    changes: list[str],
) -> str:
    inventory, risk, forecast = (of_type(sources, name) for name in SUBJECTS)
    if forecast is None and inventory is not None and is_empty(inventory):
        nothing = f"{inline(inventory.artifact.summary)} {inventory.cite}"
        moved = bullets(f"Since the last run: {change}" for change in changes[:_CHANGES])
        parts = [_not_answered(request), f"# {inline(title)}", nothing, moved]
        return "\n\n".join(part for part in parts if part) + "\n"
    parts = [
        _not_answered(request),
        f"# {inline(title)}",
        f"Objective: {inline(asked(request.objective))}",
        f"As of {request.now.strftime('%Y-%m-%d %H:%M')} UTC. Every statement names its source, listed at the end.",
        "## Summary",
        bullets(_summary(sources, request.signals, changes)),
        figure,
    ]
    if kind == "csv" and forecast is not None:
        parts.append(csv_section(forecast))
    elif inventory is not None:
        parts.append(notes_section(inventory) if kind == "notes" else inventory_section(inventory))
        parts.append(risk_section(risk) if risk is not None else "")
        parts.append(noticed_section(inventory))
    parts += [
        _signal_section(request.signals, sources),
        remembered,
        *_open(sources),
        "## Sources",
        sources_table(sources),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def is_empty(inventory: Source) -> bool:
    """Return True for the inventory of a folder without files."""
    return inventory.content.get("totals", {}).get("files") == 0


def _summary(sources: list[Source], signals: tuple[Signal, ...], changes: list[str]) -> list[str]:
    lines = [
        f"{inline(source.artifact.summary)} {source.cite}"
        for source in sources
        if source.artifact.summary and source.artifact.type in (*SUBJECTS, "recalled_facts")
    ]
    if signals:
        first = max(signals, key=lambda signal: (signal.strength, signal.name, signal.subject))
        note = f": {inline(first.note)}" if first.note else ""
        cite = raised_by(first, sources)
        strength = format_score(first.strength)
        text = f"Strongest signal: {inline(first.name)} on {code(first.subject)} ({strength}){note}. {cite}"
        lines.append(text.rstrip())
    return lines + [f"Since the last run: {change}" for change in changes[:_CHANGES]]


def _signal_section(signals: tuple[Signal, ...], sources: list[Source]) -> str:
    """Return the strongest signals, with a limit for each name so that no name fills the section."""
    if not signals:
        return ""
    seen: Counter[str] = Counter()
    shown: list[Signal] = []
    for signal in sorted(signals, key=lambda signal: (-signal.strength, signal.name, signal.subject)):
        seen[signal.name] += 1
        if seen[signal.name] <= _SIGNALS_A_NAME and len(shown) < _SIGNALS:
            shown.append(signal)
    rows = [
        [
            f"{inline(s.name)} {raised_by(s, sources)}".rstrip(),
            format_score(s.strength),
            code(s.subject),
            inline(s.note),
        ]
        for s in shown
    ]
    title = f"## Signals ({format_extent(len(rows), len(signals))})"
    return f"{title}\n\n{table(['Signal', 'Strength', 'About', 'Note'], rows, 'lrll')}"


def raised_by(signal: Signal, sources: list[Source]) -> str:
    """Return the citation of the artifact whose task raises signals of this name."""
    maker = "risk_scores" if signal.name == "risk" else "inventory"
    if signal.name in {"leakage", "small_data", "predictability"}:
        maker = "csv_forecast"
    source = of_type(sources, maker)
    return source.cite if source is not None else ""


def _open(sources: list[Source]) -> list[str]:
    questions = open_questions(sources)
    actions = next_actions(sources)
    parts: list[str] = []
    if questions:
        parts += ["## Open questions", bullets(f"{inline(text)} {source.cite}" for text, source in questions)]
    if actions:
        steps = "\n".join(f"{place}. {inline(text)} {s.cite}" for place, (text, s) in enumerate(actions, start=1))
        parts += ["## Next actions", steps]
    return parts


def open_questions(sources: list[Source]) -> list[tuple[str, Source]]:
    """Return the gaps that the artifacts report."""
    found: list[tuple[str, Source]] = []
    inventory, risk, forecast = (of_type(sources, name) for name in SUBJECTS)
    if inventory is not None:
        if left := left_out_of(inventory.content):
            found.append((f"Does it matter that the inventory left out {left}?", inventory))
        listed_by = inventory.content.get("folder", {}).get("listed_by")
        if inventory.content.get("history", 0) is None and listed_by != "name":
            found.append(("Without git history: what changed lately, and who knows these files?", inventory))
    if risk is not None and risk.content.get("scores") and _has_history(inventory):
        reason = risk.content.get("why_not_supervised")
        if reason:
            found.append((f"Would the order hold with more history? It was not learned, because {reason}.", risk))
    if forecast is not None:
        for text in forecast.content.get("warnings", []):
            if "almost determines" in text or "no better" in text:
                found.append((f"Is this acceptable? {text}", forecast))
    return found


def _has_history(inventory: Source | None) -> bool:
    return inventory is not None and bool(inventory.content.get("history") or inventory.content.get("git"))


def next_actions(sources: list[Source]) -> list[tuple[str, Source]]:
    """Return the most important actions, from the scores and the findings."""
    found: list[tuple[str, Source]] = []
    inventory, risk, forecast = (of_type(sources, name) for name in SUBJECTS)
    if risk is not None:
        highest = [f"{entry['path']} ({format_score(entry['score'])})" for entry in risk.content.get("scores", [])[:3]]
        if highest:
            found.append((f"Read the files with the highest scores: {', '.join(highest)}.", risk))
    if inventory is not None:
        totals = inventory.content.get("totals", {})
        if totals.get("broken_links"):
            found.append((f"Repair {count_noun(totals['broken_links'], 'broken link')}.", inventory))
        if totals.get("source_files") and not totals.get("test_files"):
            found.append(("Write a first test: there is none.", inventory))
        if totals.get("markers"):
            markers = count_noun(totals["markers"], "open marker")
            found.append(
                (
                    f"Decide on {markers}: do what {'it says' if totals['markers'] == 1 else 'they say'}, or delete.",
                    inventory,
                )
            )
    if forecast is not None and forecast.content.get("forecasts"):
        error = forecast.content.get("evaluation", {}).get("held_out_rows")
        how = "with the error that was measured" if error else "as a baseline: nothing was learned, no error measured"
        found.append((f"Use {count_noun(forecast.content['open_rows'], 'forecast')} {how}.", forecast))
    return found


def _chart(
    request: SkillRequest, sources: list[Source], kind: str, artifacts: list[Artifact], insights: list[str]
) -> str:
    """Draw and write the chart; return its Markdown, or "" if there is no chart."""
    try:
        drawn = draw(sources, kind)
    except ImportError:
        insights.append(MISSING_EXTRA)
        return ""
    if drawn is None:
        insights.append("There was nothing to draw.")
        return ""
    data, caption = drawn
    artifacts.append(written(request, "chart", "chart.svg", data, "image/svg+xml", f"{caption}."))
    return f"![{inline(caption)}](chart.svg)"


def _checklist(
    request: SkillRequest, sources: list[Source], kind: str, title: str, artifacts: list[Artifact]
) -> int | None:
    inventory = of_type(sources, "inventory")
    if kind != "notes" or inventory is None:
        return None
    text, count = checklist(inventory, title)
    artifacts.append(
        written(
            request,
            "checklist",
            "checklist.md",
            text.encode(),
            "text/markdown",
            f"{count_noun(count, 'open point')}." if count else "Nothing is open.",
        )
    )
    return count


def written(request: SkillRequest, kind: str, name: str, data: bytes, mime: str, summary: str) -> Artifact:
    """Write *data* below the workdir and return the artifact that refers to it."""
    request.workdir.mkdir(parents=True, exist_ok=True)
    (request.workdir / name).write_bytes(data)
    return Artifact(
        type=kind,
        name=name,
        summary=truncate(summary, MAX_DETAIL_CHARS),
        uri=f"workdir:{name}",
        mime=mime,
        size_bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
    )
