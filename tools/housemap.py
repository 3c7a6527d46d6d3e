"""Generate the map of the source tree from docstrings: a row per package, a row per file."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "fireswarm"


def rooms() -> list[tuple[str, str]]:
    """Return the packages and the root's files with the first line of their docstrings, in tree order."""
    packages = [(f"{_name(path.parent)}/", _purpose(path)) for path in SOURCE.rglob("__init__.py")]
    root = [(_name(path), _purpose(path)) for path in SOURCE.glob("*.py")]
    return sorted(row for row in (*packages, *root) if row[0] not in ("./", "__init__.py"))


def files(package: Path) -> list[tuple[str, str]]:
    """Return the files of one package with the first line of their docstrings."""
    return [(path.name, _purpose(path)) for path in sorted(package.glob("*.py")) if path.name != "__init__.py"]


def room_table() -> str:
    """Return the packages as a Markdown table."""
    return "\n".join(["| room | purpose |", "| --- | --- |", *(f"| `{name}` | {text} |" for name, text in rooms())])


def file_tables() -> str:
    """Return a section per package with a table of its files."""
    sections: list[str] = []
    for name, text in rooms():
        rows = files(SOURCE / name) if name.endswith("/") else []
        if rows:
            table = ["| file | purpose |", "| --- | --- |", *(f"| `{file}` | {purpose} |" for file, purpose in rows)]
            sections.append("\n".join([f"## {name}", "", text, "", *table]))
    return "\n\n".join(sections)


def _name(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def _purpose(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.split("\n", 1)[0].replace("``", "`").replace("|", "\\|")
