"""Scope of changes: an allowlist of paths, and unified diffs that are checked against it before they are applied."""

from __future__ import annotations

import difflib
import re
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fireswarm.contracts.linear_pattern import match_glob
from fireswarm.errors import GitFailed, InvalidInput
from fireswarm.pipelines.allowed_code import fixed_faults
from fireswarm.pipelines.files import lay_out, read_back, safe_path
from fireswarm.processes.git import run_git

GIT_SECONDS = 30.0

_HEADER = re.compile(r"^(?:---|\+\+\+) (?:[ab]/)?(?P<path>\S[^\t\n]*)", re.MULTILINE)
_FORBIDDEN = re.compile(
    r"^(?:GIT binary patch|Binary files |(?:new|old|deleted file|new file) mode (?!100644)|rename |copy |similarity )",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Allowlist:
    """Path patterns: ``*`` and ``?`` within a folder, ``**`` across folders. Other paths may not change."""

    patterns: tuple[str, ...]

    def allows(self, path: str) -> bool:
        """Return True if *path* matches one of the patterns."""
        try:
            path = safe_path(path)
        except InvalidInput:
            return False
        return any(match_glob(pattern, path) for pattern in self.patterns)

    def faults(self, paths: Iterable[str], most: int) -> list[str]:
        """Return the faults of a change of *paths*; at most *most* paths may change."""
        listed = sorted(set(paths))
        faults = [
            f"{path} is outside the scope ({', '.join(self.patterns)})" for path in listed if not self.allows(path)
        ]
        if len(listed) > most:
            faults.append(f"{len(listed)} files are changed; {most} are allowed")
        return faults


def patch_paths(patch: str) -> list[str]:
    """Return the paths named in a unified diff. Raises InvalidInput if it is binary, renames files, or sets modes."""
    if forbidden := _FORBIDDEN.search(patch):
        raise InvalidInput(f"a patch may only change text, but contains {forbidden[0].strip()!r}")
    found = [match["path"].strip() for match in _HEADER.finditer(patch)]
    paths = sorted({path for path in found if path != "/dev/null"})
    if not paths:
        raise InvalidInput("not a unified diff: `--- a/...` and `+++ b/...` lines are missing")
    return [safe_path(path) for path in paths]


def apply_patch(patch: str, files: Mapping[str, str], allowlist: Allowlist, most: int) -> dict[str, str]:
    """Return *files* with *patch* applied. Raises InvalidInput if it does not apply or is out of scope."""
    paths = patch_paths(patch)
    if faults := [*fixed_faults(paths), *allowlist.faults(paths, most)]:
        raise InvalidInput("; ".join(faults))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        lay_out(files, folder)
        text = patch if patch.endswith("\n") else f"{patch}\n"
        try:
            command = ("apply", "--recount", "--whitespace=nowarn", "-")
            run_git(folder, *command, stdin=text.encode(), timeout_seconds=GIT_SECONDS)
        except GitFailed as error:
            raise InvalidInput(f"the patch does not apply: {error}") from error
        after = read_back(folder, {*files, *paths})
    if faults := allowlist.faults(changed_files(files, after), most):
        raise InvalidInput("; ".join(faults))
    return after


def changed_files(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return the paths that were added, removed or changed."""
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))


def unified_diff(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return one diff of all changed files, in git's format."""
    return "".join(_diff_of(name, before.get(name), after.get(name)) for name in changed_files(before, after))


def _diff_of(name: str, before: str | None, after: str | None) -> str:
    """Return the unified diff of one file in git's format."""
    head = f"diff --git a/{name} b/{name}\n"
    if before is None:
        head += "new file mode 100644\n"
    if after is None:
        head += "deleted file mode 100644\n"
    lines = difflib.unified_diff(
        (before or "").splitlines(keepends=True),
        (after or "").splitlines(keepends=True),
        "/dev/null" if before is None else f"a/{name}",
        "/dev/null" if after is None else f"b/{name}",
    )
    return head + "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
