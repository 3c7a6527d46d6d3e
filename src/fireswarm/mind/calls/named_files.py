"""Name the files that a call reads, with their hashes, so that an approval is valid for these files only."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import islice, product
from pathlib import Path

from fireswarm.contracts.skills.permissions import MAX_NAMED_FILES
from fireswarm.mind import gate
from fireswarm.skills.command_rules import CommandsOf
from fireswarm.skills.packs.content_hash import whole_hash

HASH_CHARS = 16
MAX_HASHED_BYTES = 50_000_000
"""Of a larger file, its size and time count."""

MAX_NAME_CHARS = 1_000
"""Longer texts of an input are no names of files."""

MAX_FOLDERS = 20
MAX_LOOKS = 20_000
"""Maximum number of places at which the files of a line are looked for."""

MAX_OPTION_CHARS = 100
_SEPARATORS = re.compile(r"[\s;&|()<>{}`\"'=,:@\\$]+")
_SPACES = re.compile(r"[\s;&|<>\"'`]+")
_COMPUTED = re.compile(
    r"[@?+!]?\([^()]*\)|\{[^{}]*\}|\[\[:\w+:\]\]|\[[^/\[\]]*\]|[*?]+|~\+/|\$'|\$\w+|\$\{[^{}]*\}"
    r"|\\x?[0-9A-Fa-f]{2,3}"
)
"""Parts of a word that a shell computes: patterns, braces, variables, and letters by their number."""


def files_of(call: gate.Call, workspace: Path) -> tuple[str, ...]:
    """Return the files of *workspace* that a call names, ``NAME sha256:HASH`` each, and the skill whose code runs.

    A name in a line is looked for in each folder that the line names: a shell may have gone there. Programs of the
    system, folders, and names that a shell computes from variables and outputs are not among them.
    """
    root = Path(os.path.realpath(workspace))
    folder = call.cwd or root
    names = [name for name in dict.fromkeys(_names_in(call)) if 0 < len(name) <= MAX_NAME_CHARS and "\0" not in name]
    folders = _folders_of(names, folder) if call.tool == gate.BASH else [folder]
    named: dict[Path, str] = {}
    for where, name in islice(product(folders, names), MAX_LOOKS):
        for path in _files_at(where, name):
            if path.is_relative_to(root) and path not in named:
                named[path] = f"{path.relative_to(root).as_posix()} sha256:{_hash_of(path)}"
    listed = [*named.values()]
    if call.skill is not None:
        listed.insert(0, f"skill {call.skill.name} {whole_hash(call.skill.folder)}")
    if len(listed) > MAX_NAMED_FILES:
        rest = hashlib.sha256("\n".join(listed[MAX_NAMED_FILES:]).encode()).hexdigest()[:HASH_CHARS]
        return (*listed[:MAX_NAMED_FILES], f"{len(listed) - MAX_NAMED_FILES:,} more sha256:{rest}")
    return tuple(listed)


def _names_in(call: gate.Call) -> Iterator[str]:
    if call.tool != gate.BASH:
        yield from (call.argument, *gate.texts_in(call.inputs))
        return
    for words in CommandsOf(call.argument).commands:
        for word in words:
            yield word
            yield word.rpartition("=")[2]
    yield from _shell_words(call.argument)
    yield from _SPACES.split(call.argument.replace("\\\n", ""))
    for word in _SEPARATORS.split(call.argument):
        yield word
        if word.startswith("-"):
            yield from (word[start:] for start in range(2, min(len(word), MAX_OPTION_CHARS)))


def _shell_words(line: str) -> Iterator[str]:
    """Yield the words of a line without their quotes, among them the targets of redirections."""
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    words.commenters = ""
    with contextlib.suppress(ValueError):  # an open quote
        yield from words


def _folders_of(names: Sequence[str], start: Path) -> list[Path]:
    """Return the folders in which a line may name files: *start*, and each that it names, also within another one."""
    found = [start]
    for folder in found:  # grows
        for name in names:
            for place in _places_at(folder, name):
                if len(found) < MAX_FOLDERS and place not in found and place.is_dir():
                    found.append(place)
    return found


def _files_at(folder: Path, name: str) -> Iterator[Path]:
    """Yield the file with a name, those that fit its pattern, and the module of Python with that name."""
    module = name.replace(".", "/")
    for each in (name, f"{module}.py", f"{module}/__main__.py", f"{module}/__init__.py"):
        for place in _places_at(folder, each):
            path = Path(os.path.realpath(place))
            if path.is_file():
                yield path


def _places_at(folder: Path, name: str) -> Iterator[Path]:
    """Yield what exists by a name, or could be what a shell makes of it: a part that it computes may be anything."""
    with contextlib.suppress(OSError, ValueError, NotImplementedError, RuntimeError):
        pattern = _COMPUTED.sub("*", name.removeprefix("~+/"))
        if _COMPUTED.search(name) is None:
            place = Path(os.path.normpath(folder / name))
            if place.exists():
                yield place
        elif pattern.strip("*/.") or not name.strip("*?./"):  # a variable alone could be any file
            yield from islice(folder.glob(pattern), MAX_NAMED_FILES)


def _hash_of(path: Path) -> str:
    try:
        state = path.stat()
        if state.st_size > MAX_HASHED_BYTES:
            return f"{state.st_size}-{state.st_mtime_ns}"
        return hashlib.sha256(path.read_bytes()).hexdigest()[:HASH_CHARS]
    except OSError:
        return "unreadable"
