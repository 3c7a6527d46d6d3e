"""Gates that may only shrink: lines of a file, lines of a function, discouraged phrases. Ruff measures complexity."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import prose

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
ROOT = Path(__file__).resolve().parents[1]


def tracked() -> list[Path]:
    """Python files under git, and new ones that it does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [path for name in listed.stdout.splitlines() if (path := ROOT / name).exists()]


def faults(path: Path) -> Iterator[str]:
    """What is too large in one file."""
    text = path.read_text(encoding="utf-8")
    name = path.relative_to(ROOT)
    lines = len(text.splitlines())
    if lines > MAX_FILE_LINES:
        yield f"{name}: {lines} lines, more than {MAX_FILE_LINES}: split it along its responsibilities"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MAX_FUNCTION_LINES:
                yield f"{name}:{node.lineno} {node.name}: {length} lines, more than {MAX_FUNCTION_LINES}"


def main() -> int:
    """Print every fault; returns the exit code."""
    found = [*(fault for path in tracked() for fault in faults(path)), *prose.faults()]
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
