"""Generate the map of the source tree from docstrings: a row per package, a row per file."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FIRESWARM = ROOT / "src" / "fireswarm"


def rooms() -> list[tuple[Path, str, str]]:
    """Return the packages and the root's files with name and first line of the docstring: fireswarm's, then the others.

    Names of fireswarm's leave out ``fireswarm/``.
    """
    inside = [path for path in FIRESWARM.rglob("__init__.py") if path.parent != FIRESWARM]
    root = [path for path in FIRESWARM.glob("*.py") if path.name != "__init__.py"]
    rows: list[tuple[Path, str, str]] = []
    others = [(source, list(source.rglob("__init__.py"))) for source in sorted(ROOT.glob("packages/*/src"))]
    for base, paths in ((FIRESWARM, [*inside, *root]), *others):
        rows += sorted(((path, _name(path, base), _purpose(path)) for path in paths), key=lambda row: row[1])
    return rows


def files(package: Path) -> list[tuple[str, str]]:
    """Return the files of one package with the first line of their docstrings."""
    return [(path.name, _purpose(path)) for path in sorted(package.glob("*.py")) if path.name != "__init__.py"]


def room_table() -> str:
    """Return the packages as a Markdown table."""
    return "\n".join(["| room | purpose |", "| --- | --- |", *(f"| `{name}` | {text} |" for _, name, text in rooms())])


def file_tables() -> str:
    """Return a section per package with a table of its files."""
    sections: list[str] = []
    for path, name, text in rooms():
        rows = files(path.parent) if name.endswith("/") else []
        if rows:
            table = ["| file | purpose |", "| --- | --- |", *(f"| `{file}` | {purpose} |" for file, purpose in rows)]
            sections.append("\n".join([f"## {name}", "", text, "", *table]))
    return "\n\n".join(sections)


def _name(path: Path, base: Path) -> str:
    if path.name == "__init__.py":
        return f"{path.parent.relative_to(base).as_posix()}/"
    return path.relative_to(base).as_posix()


def _purpose(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.split("\n", 1)[0].replace("``", "`").replace("|", "\\|")
