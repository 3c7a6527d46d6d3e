"""Find the tests among the files, the files that they test, and the distance of each file from a test."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any

from .kinds import is_code

_TEST_NAME = re.compile(r"^(test_.+|.+_test|.+_spec|.+[.-](test|spec)|tests?)$", re.IGNORECASE)
_TEST_FOLDERS = frozenset({"test", "tests", "__tests__", "spec", "specs"})
_AFFIX = re.compile(r"^(test_)|(_test|_spec|[.-]test|[.-]spec)$", re.IGNORECASE)
_SCRIPT_SUFFIXES = (".ts", ".tsx", ".js", ".jsx", ".mjs", ".vue", "/index.ts", "/index.js")


def is_test(path: str) -> bool:
    """Return True if a path is a test by its name or by its folder."""
    pure = PurePosixPath(path)
    return bool(_TEST_NAME.match(pure.stem)) or any(part.lower() in _TEST_FOLDERS for part in pure.parts[:-1])


class ImportResolver:
    """Finds the file of an import among the files of a folder; an ambiguous short name finds nothing."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = set(paths)
        self._modules: dict[str, str | None] = {}
        for path in sorted(self._paths):
            if path.endswith((".py", ".pyi")):
                parts = _module_parts(path)
                for start in range(len(parts)):
                    name = ".".join(parts[start:])
                    self._modules[name] = None if name in self._modules else path

    def resolve(self, importer: str, name: str) -> str | None:
        """Return the file that *name* means in *importer*, or None if it is not in this folder."""
        if name.startswith(("./", "../")):
            return self._script(importer, name)
        if name.startswith("."):
            return self._relative(importer, name)
        return self._modules.get(name)

    def _relative(self, importer: str, name: str) -> str | None:
        dots = len(name) - len(name.lstrip("."))
        folder = list(PurePosixPath(importer).parent.parts)
        base = folder[: len(folder) - (dots - 1)]
        target = "/".join([*base, *(part for part in name[dots:].split(".") if part)])
        for candidate in (f"{target}.py", f"{target}/__init__.py"):
            if candidate in self._paths:
                return candidate
        return None

    def _script(self, importer: str, name: str) -> str | None:
        parts: list[str] = list(PurePosixPath(importer).parent.parts)
        for part in name.split("/"):
            if part == ".." and parts:
                parts.pop()
            elif part not in {".", "..", ""}:
                parts.append(part)
        target = "/".join(parts)
        if target in self._paths:
            return target
        return next((target + suffix for suffix in _SCRIPT_SUFFIXES if target + suffix in self._paths), None)


def map_tests(records: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Add test marks and distances to *records*; returns for each tested file the tests that name or import it.

    ``test_distance`` is 1 for a file that a test imports or is named after, one more for each further import, and
    absent for a file that no test reaches.
    """
    code = {record["path"]: record for record in records if is_code(record["language"])}
    resolver = ImportResolver(code)
    edges: dict[str, list[str]] = {}
    for path, record in code.items():
        found = {resolver.resolve(path, name) for name in record.get("imports", [])}
        edges[path] = sorted(target for target in found if target and target != path)
    tests = sorted(path for path in code if is_test(path))
    by_stem: dict[str, list[str]] = {}
    for path in code:
        if not is_test(path):
            by_stem.setdefault(PurePosixPath(path).stem.lower(), []).append(path)
    tested: dict[str, set[str]] = {}
    for test in tests:
        named = by_stem.get(_AFFIX.sub("", PurePosixPath(test).stem).lower(), [])
        for target in [*edges[test], *(named if len(named) == 1 else [])]:
            if not is_test(target):
                tested.setdefault(target, set()).add(test)
    _mark_distances(code, edges, tests, tested)
    return {path: sorted(found) for path, found in sorted(tested.items())}


def _mark_distances(
    code: dict[str, dict[str, Any]], edges: dict[str, list[str]], tests: list[str], tested: dict[str, set[str]]
) -> None:
    for path in tests:
        code[path]["test"] = True
    distance = dict.fromkeys(tested, 1)
    queue = deque(sorted(tested))
    while queue:
        path = queue.popleft()
        for target in edges[path]:
            if target not in distance and not is_test(target):
                distance[target] = distance[path] + 1
                queue.append(target)
    for path, steps in distance.items():
        code[path]["test_distance"] = steps


def _module_parts(path: str) -> list[str]:
    parts = list(PurePosixPath(path).with_suffix("").parts)
    return parts[:-1] if parts and parts[-1] == "__init__" else parts
