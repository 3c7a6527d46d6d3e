"""Evidence in a text: the files and lines that it names exist, and say what the text says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.agent_tasks.task import Citation

MAX_LINES = 12
"""A longer passage is no evidence: it could hold anything."""

_REFERENCE = re.compile(r"(?P<path>[\w./~-]+\.\w{1,8}):L?(?P<first>\d+)(?:[-\N{EN DASH}]L?(?P<last>\d+))?")
_NEW_STATEMENT = re.compile(r"\s*(?:[-*+] |\d+[.)] |\||#|$)")


def find_fault_of_evidence(text: str, project: Path, cites: Sequence[Citation]) -> str | None:
    """Return None if the evidence in *text* holds, else what is wrong."""
    statements = list(_statements(text))
    for statement in statements:
        for path, first, last in _references(statement, project):
            if _lines(project / path, first, last) is None:
                return f"{path}:{first} does not exist"
    for each in cites:
        if not any(_says(statement, project, each) for statement in statements):
            return f"no statement about {each.about!r} cites a line with {each.line!r}"
    return None


def _says(statement: str, project: Path, citation: Citation) -> bool:
    if not re.search(citation.about, statement, re.IGNORECASE):
        return False
    cited = (_lines(project / path, first, last) for path, first, last in _references(statement, project))
    return any(lines is not None and re.search(citation.line, lines, re.IGNORECASE) for lines in cited)


def _statements(text: str) -> Iterator[str]:
    """Yield paragraphs, items of lists and rows of tables, each as one line."""
    gathered: list[str] = []
    for line in text.splitlines():
        if _NEW_STATEMENT.match(line) and gathered:
            yield " ".join(gathered)
            gathered = []
        gathered.append(line.strip())
    yield " ".join(gathered)


def _references(statement: str, project: Path) -> Iterator[tuple[str, int, int]]:
    for found in _REFERENCE.finditer(statement.replace(f"{project}/", "")):
        first = int(found["first"])
        yield found["path"].removeprefix("./"), first, int(found["last"] or first)


def _lines(path: Path, first: int, last: int) -> str | None:
    """Return these lines, or None if one of them does not exist or they are too many."""
    if not path.is_file() or not 0 < first <= last < first + MAX_LINES:
        return None
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(lines[first - 1 : last]) if last <= len(lines) else None
