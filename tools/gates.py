"""Gates: sizes of files, functions and folders, names. Ruff measures complexity."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_FILES_IN_FOLDER = 12
MAX_ROOT_MODULES = 8
MAX_DOORS = 20
SMALLEST_NAMED_LIMIT = 100
PARTICIPLES = frozenset({
    "asked", "begun", "bound", "brought", "built", "chosen", "drawn", "found", "given", "held", "kept", "known",
    "left", "met", "paid", "said", "seen", "sent", "shown", "spent", "taken", "thought", "told", "understood",
    "written",
})  # fmt: skip
"""Irregular participles; the name of a function must not be one of these, or one word in -ed."""
PROPERTIES = frozenset({"property", "cached_property", "setter"})
ALLOWED = frozenset({"documented", "feed", "embed", "need"})
"""Words in -ed that are verbs, and the helper ``documented``, which declares a field with its description."""
ROOT = Path(__file__).resolve().parents[1]
SOURCES = (ROOT / "src" / "fireswarm", *sorted(ROOT.glob("packages/*/src/*")))
"""The packages that are held to the gates, each by itself."""


def tracked() -> list[Path]:
    """Return the Python files under git, and new files that git does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [path for name in listed.stdout.splitlines() if (path := ROOT / name).exists()]


def faults(path: Path) -> Iterator[str]:
    """Yield a fault if the file or one of its functions is too long."""
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


def layout_faults(source: Path) -> Iterator[str]:
    """Yield a fault for too many top-level modules and for folders with too many files."""
    doors = {path.name for path in source.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    modules = {path.name for path in source.glob("*.py")} - {"__init__.py"}
    if len(modules) > MAX_ROOT_MODULES:
        yield f"{source.name}: {len(modules)} modules in the root, more than {MAX_ROOT_MODULES}"
    if len(doors) + len(modules) > MAX_DOORS:
        yield f"{source.name}: {len(doors) + len(modules)} doors, more than {MAX_DOORS}: put rooms together"
    for folder in [source, *(path.parent for path in source.rglob("*/__init__.py"))]:
        files = len(list(folder.glob("*.py")))
        if files > MAX_FILES_IN_FOLDER:
            yield f"{folder.relative_to(source.parent)}: {files} files, more than {MAX_FILES_IN_FOLDER}: split it"


def name_faults(source: Path) -> Iterator[str]:
    """Yield class names used twice, renamed imports of modules, functions named by participles."""
    homes: dict[str, Path] = {}
    modules = {
        ".".join(path.relative_to(source.parent).with_suffix("").parts).removesuffix(".__init__")
        for path in source.rglob("*.py")
    }
    for path in sorted(source.rglob("*.py")):
        name = path.relative_to(source)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                if node.name in homes:
                    yield f"{name}:{node.lineno} class {node.name}: {homes[node.name]} has one of that name"
                homes.setdefault(node.name, name)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    if alias.asname not in (None, alias.name) and f"{node.module}.{alias.name}" in modules:
                        yield f"{name}:{node.lineno} imports {alias.name} as {alias.asname}: rename the file instead"
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and _is_participle(node):
                yield f"{name}:{node.lineno} {node.name}: a function is named by what it does"


def cut_faults(folder: Path) -> Iterator[str]:
    """Slices that end at a literal of three digits or more: such a limit needs a name."""
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Slice(upper=ast.Constant(value=int(limit))) if limit >= SMALLEST_NAMED_LIMIT:
                    name = path.relative_to(folder.parent)
                    yield f"{name}:{node.lineno} cuts at {limit}: name the limit, see contracts/limits.py"
                case _:
                    pass


def face_faults(source: Path) -> Iterator[str]:
    """Yield every use of the board by a face: the command line and the API call the client."""
    for path in sorted([*source.glob("testing.py"), *source.glob("api/**/*.py"), *source.glob("cli/**/*.py")]):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr == "board":
                yield f"{path.relative_to(source)}:{node.lineno} uses the board: call a method of client.Swarm"


def typing_faults(source: Path) -> Iterator[str]:
    """Yield modules whose ``__getattr__`` returns Any, which hides their types from strict typing."""
    for path in sorted(source.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and _hides_types(node):
                yield f"{path.relative_to(source)}:{node.lineno} __getattr__ returns Any: return object instead"


def _hides_types(node: ast.FunctionDef) -> bool:
    return node.name == "__getattr__" and isinstance(node.returns, ast.Name) and node.returns.id == "Any"


def _is_participle(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    decorators = {getattr(item, "id", getattr(item, "attr", "")) for item in node.decorator_list}
    word = node.name.strip("_")
    return (
        not decorators & PROPERTIES
        and word not in ALLOWED
        and (word in PARTICIPLES or ("_" not in word and word.endswith("ed")))
    )


CHECKS = (layout_faults, name_faults, typing_faults, face_faults, cut_faults)
"""Gates of one package."""


def main() -> int:
    """Print every fault and return the exit code."""
    found = [
        *(fault for path in tracked() for fault in faults(path)),
        *(fault for source in SOURCES for check in CHECKS for fault in check(source)),
        *cut_faults(ROOT / "skills"),
    ]
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
