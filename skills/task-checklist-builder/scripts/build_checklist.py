"""Collect open tasks from files. Also a command: ``python build_checklist.py PATH``."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fireswarm import LeftOut, count_noun, read_text, walk_files

MAX_TASKS = 2_000
MAX_TEXT_CHARS = 300
URGENCIES = ("urgent", "open", "later", "done")

_BOX = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+\[([ xX])\]\s+(.+)")
_MARKER = re.compile(r"(?:#|//|/\*|<!--|--|;|%|\*)\s*(TODO|FIXME|XXX|HACK)\b\s*(?:\(([^)]{1,40})\))?[:\s-]*(.*)")
_ACTION = re.compile(r"\s*(?:[-*+]\s+)?\*{0,2}(?:action(?: item)?|to[- ]?do)\*{0,2}\s*:\*{0,2}\s*(.+)", re.I)
_HEADING = re.compile(r"#{1,6}\s++(.+)")
_STEPS = re.compile(
    r"(?:next steps?|open (?:points?|questions?|issues?)|action items?|actions|to[- ]?dos?|tasks)\b", re.I
)
_BULLET = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+(.+)")
_OWNER = re.compile(r"(?<![\w.])@([A-Za-z][\w-]{0,39})")
_DATE = re.compile(r"\b(20\d\d-[01]\d-[0-3]\d)\b")
_URGENT = re.compile(r"\b(?:urgent|asap|blocker|blocking|critical|immediately)\b|!!", re.I)
_LATER = re.compile(r"\b(?:someday|maybe|nice to have|low priority|eventually|later)\b", re.I)


@dataclass(frozen=True)
class Task:
    """An open task in a line. ``kind``: box, marker, action or step; ``due`` is a date, or empty."""

    text: str
    path: str
    line: int
    kind: str
    urgency: str
    owner: str = ""
    due: str = ""


@dataclass
class Checklist:
    """Tasks in the order of urgency, file and line."""

    tasks: list[Task] = field(default_factory=list)
    read: int = 0
    beyond: int = 0
    left_out: LeftOut = field(default_factory=LeftOut)

    def of(self, urgency: str) -> list[Task]:
        """Tasks of one urgency."""
        return [task for task in self.tasks if task.urgency == urgency]


def build(place: Path, *, include_done: bool = False) -> Checklist:
    """Collect the tasks of a file or of a folder's text files."""
    found = Checklist()
    seen: set[tuple[str, str]] = set()
    for file, name in walk_files(place, found.left_out):
        if (text := read_text(file, name, found.left_out)) is None:
            continue
        found.read += 1
        for task in tasks_in(text.splitlines(), name):
            key = (name, " ".join(task.text.lower().split()))
            if key in seen or (task.urgency == "done" and not include_done):
                continue
            if len(found.tasks) >= MAX_TASKS:
                found.beyond += 1
                continue
            seen.add(key)
            found.tasks.append(task)
    found.tasks.sort(key=lambda task: (URGENCIES.index(task.urgency), task.due or "9999", task.path, task.line))
    return found


def tasks_in(lines: Sequence[str], path: str) -> Iterator[Task]:
    """The tasks of one file."""
    steps = fenced = False
    prose = Path(path).suffix.lower() in {".md", ".markdown", ".txt", ".rst", ".adoc", ""}
    for number, line in enumerate(lines, start=1):
        if prose and line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        if fenced:
            continue
        heading = _HEADING.match(line) if prose else None
        if heading is not None:
            steps = _STEPS.match(heading[1]) is not None
            continue
        found = _task_of(line, prose, steps)
        if found is not None:
            kind, text, owner, done = found
            yield _made(text, path, number, kind, owner, done)


def _task_of(line: str, prose: bool, steps: bool) -> tuple[str, str, str, bool] | None:
    """Return ``(kind, text, owner, done)`` of the task in a line."""
    if prose and (box := _BOX.match(line)):
        return "box", box[2], "", box[1] != " "
    if marker := _MARKER.search(line):
        text = marker[3].strip(" */->") or "(no text)"
        return "marker", f"{marker[1]} {text}", marker[2] or "", False
    if prose and (action := _ACTION.match(line)):
        return "action", action[1], "", False
    if prose and steps and (bullet := _BULLET.match(line)):
        return "step", bullet[1], "", False
    return None


def _made(text: str, path: str, line: int, kind: str, owner: str, done: bool) -> Task:
    named = _OWNER.search(text)
    date = _DATE.search(text)
    urgency = "open"
    if done:
        urgency = "done"
    elif text.startswith("FIXME") or _URGENT.search(text):
        urgency = "urgent"
    elif _LATER.search(text):
        urgency = "later"
    said = re.sub(r"^(?:TODO|FIXME|XXX|HACK)\s+", "", " ".join(text.split()))[:MAX_TEXT_CHARS]
    return Task(said, path, line, kind, urgency, owner or (named[1] if named else ""), date[1] if date else "")


def as_markdown(found: Checklist, title: str = "Checklist") -> str:
    """Return the checklist as Markdown with check boxes."""
    still, files = len(found.tasks) - len(found.of("done")), len({task.path for task in found.tasks})
    urgent = len(found.of("urgent"))
    extent = f"{still:,} open{of_them_urgent(urgent)}, in {count_noun(files, 'file')}" if still else "Nothing is open."
    lines = [f"# {title}", "", extent, ""]
    for urgency in URGENCIES:
        tasks = found.of(urgency)
        if not tasks:
            continue
        lines += [f"## {urgency.capitalize()}", ""]
        for task in tasks:
            owner = f", @{task.owner}" if task.owner and f"@{task.owner}" not in task.text else ""
            due = f", by {task.due}" if task.due and task.due not in task.text else ""
            mark = "x" if urgency == "done" else " "
            lines.append(f"- [{mark}] {task.text}{owner}{due} ({task.path}:{task.line})")
        lines.append("")
    if found.beyond:
        lines += [f"Not listed: {count_noun(found.beyond, 'further task')}.", ""]
    lines += found.left_out.section()
    return "\n".join(lines).rstrip("\n") + "\n"


def of_them_urgent(urgent: int) -> str:
    """Return the number of urgent tasks for a sentence, or ""."""
    return f", {urgent:,} of them urgent" if urgent else ""


def as_json(found: Checklist) -> dict[str, Any]:
    """Everything, as plain values."""
    return {
        "read": found.read,
        "counts": {urgency: len(found.of(urgency)) for urgency in URGENCIES},
        "tasks": [asdict(task) for task in found.tasks],
        "left_out": found.left_out.counts(),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(description="Collect open tasks from files.")
    parser.add_argument("path", type=Path)
    parser.add_argument("--include-done", action="store_true")
    parser.add_argument("--title", default="Checklist")
    parser.add_argument("--format", choices=("json", "markdown"), default="markdown")
    given = parser.parse_args(arguments)
    if not given.path.exists():
        parser.error(f"there is nothing at {given.path}")
    found = build(given.path, include_done=given.include_done)
    if given.format == "markdown":
        text = as_markdown(found, given.title)
    else:
        text = json.dumps(as_json(found), indent=2, ensure_ascii=False)
    sys.stdout.write(text.rstrip("\n") + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
