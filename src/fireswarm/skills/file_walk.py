"""Walk the folders below a place, without the files and folders that ``.gitignore`` names. All file walks use it.

Rules of nested files and negations hold as in git, also outside of a repository. Files that git tracks although a rule
names them are left out too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pathspec import GitIgnoreSpec
from pathspec.pattern import RegexPattern
from pathspec.patterns.gitignore import GitIgnorePatternError

from fireswarm.contracts.regular_file import read_regular_file
from fireswarm.settings.run_folders import IGNORE_FILE, IGNORED, RUN_ID

MAX_RULE_BYTES = 1_000_000
EXCLUDE_FILE = ".git/info/exclude"
_FOLDER_MARK = "ps_d"
"""The group in pathspec's expressions that is the slash after a folder."""

Rules = tuple[tuple[Path, GitIgnoreSpec], ...]
"""Folders with their rules, the outermost first."""


def walk_folders(
    start: Path,
    *,
    top: Path,
    skips: Callable[[str], bool],
    left_out: Callable[[str], None] | None = None,
    unreadable: Callable[[OSError], None] | None = None,
) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Yield each folder from *start* down with its folders and files, in order; the caller may remove folders.

    Links are not followed. *skips* is true for names of folders to pass over. The rules from *top* down are obeyed, and
    *top* is *start* or above. *left_out* gets each file and folder that they name, relative to *top*; a folder ends
    with a slash. Without *left_out*, no rules are obeyed.
    """
    rules: dict[Path, Rules] = {}
    is_left_out = left_out is not None and _is_in_named(start, top)
    for where, folders, files in os.walk(start, onerror=unreadable):
        here = Path(where)
        folders[:] = sorted(name for name in folders if not skips(name))
        files.sort()
        if left_out is not None:
            rules[here] = _rules_for(here, rules, top, folders, files)
            named: list[str] = []
            for names, end in ((folders, "/"), (files, "")):
                gone = {name for name in names if is_left_out or _is_named(here / name, end, rules[here])}
                named += [f"{(here / name).relative_to(top).as_posix()}{end}" for name in names if name in gone]
                names[:] = [name for name in names if name not in gone]
            if here != start and not folders and not files and named:
                named = [f"{here.relative_to(top).as_posix()}/"]
            for name in named:
                left_out(name)
        yield here, folders, files


def top_of_repository(place: Path) -> Path:
    """Return the folder of the repository that *place* is in, or *place* itself."""
    return next((each for each in (place, *place.parents) if (each / ".git").exists()), place)


def _rules_for(here: Path, known: dict[Path, Rules], top: Path, folders: Sequence[str], files: Sequence[str]) -> Rules:
    own = _read_rules(here, folders) if IGNORE_FILE in files else ()
    if (above := known.get(here.parent)) is not None:
        return above + own
    outer: Rules = _parse_rules(top, top / EXCLUDE_FILE)
    if here != top:
        for each in reversed([each for each in here.parents if each.is_relative_to(top)]):
            outer += _read_rules(each, [entry.name for entry in each.iterdir()])
    return outer + own


def _read_rules(folder: Path, names: Sequence[str]) -> Rules:
    """Return the rules of a folder; those of a folder of runs keep them out of commits only."""
    file = folder / IGNORE_FILE
    if any(map(RUN_ID.match, names)) and _read(file) == IGNORED:
        return ()
    return _parse_rules(folder, file)


def _parse_rules(folder: Path, file: Path) -> Rules:
    lines: list[str] = []
    for line in _read(file).splitlines():
        try:
            GitIgnoreSpec.from_lines([line])
        except GitIgnorePatternError:  # git passes over such a line too
            continue
        lines.append(line)
    return ((folder, GitIgnoreSpec.from_lines(lines)),) if lines else ()


def _read(file: Path) -> str:
    try:
        return read_regular_file(file, MAX_RULE_BYTES, follow=False).decode("utf-8-sig", "replace")
    except OSError:
        return ""


def _is_named(path: Path, end: str, rules: Rules) -> bool:
    """Return True if the innermost rules that say something about a path name it."""
    for folder, spec in reversed(rules):
        text = f"{path.relative_to(folder).as_posix()}{end}"
        for pattern in reversed(spec.patterns):
            if pattern.include is not None and _is_of(pattern, text):
                return pattern.include
    return False


def _is_in_named(start: Path, top: Path) -> bool:
    """Return True if *start*, or a folder above it and below *top*, is named: then so is everything in it."""
    for place in reversed([place for place in (start, *start.parents) if place != top and place.is_relative_to(top)]):
        names = [entry.name for entry in place.parent.iterdir()]
        if _is_named(place, "/", _rules_for(place.parent, {}, top, names, names)):
            return True
    return False


def _is_of(pattern: RegexPattern, text: str) -> bool:
    """Return True if a pattern names this path, and not only a folder above it: the walk has decided about those."""
    if (regex := pattern.regex) is None:
        return False
    if _FOLDER_MARK in regex.groupindex:
        return any(found.end() == len(text) for found in regex.finditer(text))
    found = regex.search(text)  # of "folder/**", all of "folder/": it names what is in the folder
    return found is not None and not (found.end() == len(text) and text.endswith("/"))
