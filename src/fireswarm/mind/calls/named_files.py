"""Name the files that a call reads, with their hashes, so that an approval is valid for these files only."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import os
import re
import secrets
import shlex
import stat
from collections.abc import Iterator, Sequence
from itertools import islice, product
from pathlib import Path

from fireswarm.contracts.skills.permissions import MAX_NAMED_FILES
from fireswarm.mind import gate
from fireswarm.mind.calls.read_by_itself import find_read_by_itself, find_words_in
from fireswarm.skills.command_rules import CommandsOf
from fireswarm.skills.packs.content_hash import whole_hash

MAX_HASHED_BYTES = 50_000_000
"""Of a larger file, its inode, its size and the time of its last change count: no program can set that time."""

MAX_NAME_CHARS = 1_000
"""Longer texts of an input are no names of files."""

MAX_FOLDERS = 20
MAX_LOOKS = 20_000
"""Maximum number of places at which the files of a line are looked for."""

MAX_OPTION_CHARS = 100
MAX_MODULE_PARTS = 8
_ENDINGS = (
    *(".js", ".mjs", ".cjs", ".ts", ".json", "/index.js", "/index.mjs", "/index.cjs", "/package.json"),
    *(".pm", ".rb"),
)
"""What interpreters add to the name of a module, besides Python."""

_SEPARATORS = re.compile(r"[\s;&|()<>{}`\"'=,:@\\$]+")
_SPACES = re.compile(r"[\s;&|<>\"'`]+")
_COMPUTED = re.compile(
    r"[@?+!]?\([^()]*\)|\{[^{}]*\}|\[\[:\w+:\]\]|\[[^/\[\]]*\]|[*?]+|~\+/|\$'|\$\w+|\$\{[^{}]*\}"
    r"|\\x?[0-9A-Fa-f]{2,3}"
)
"""Parts of a word that a shell computes: patterns, braces, variables, and letters by their number."""


def files_of(call: gate.Call, workspace: Path) -> tuple[str, ...]:
    """Return the files of *workspace* that a call names, ``NAME sha256:HASH`` each, and the skill whose code runs.

    A name in a line is looked for in each folder that the line names: a shell may have gone there. What its programs
    read by themselves there, such as a ``Makefile``, and the files that this names, count as well. Programs of the
    system, folders, and names that a shell computes from variables and outputs are not among them. What cannot be
    bound, a pipe or more places than are looked at, has another value at each call: no approval is valid for it.
    """
    root = Path(os.path.realpath(workspace))
    folder = call.cwd or root
    names = [name for name in dict.fromkeys(_names_in(call)) if 0 < len(name) <= MAX_NAME_CHARS and "\0" not in name]
    folders = _folders_of(names, folder) if call.tool == gate.BASH else [folder]
    if _is_too_much(folders, names):
        listed = [f"more places than are looked at, so it cannot be approved: make it shorter {_unlike_any()}"]
    else:
        places = (path for where, name in product(folders, names) for path in _files_at(where, name))
        read = _read_by_programs(folders, names) if call.tool == gate.BASH else ()
        found = dict.fromkeys(path for path in (*places, *read) if path.is_relative_to(root))
        listed = [f"{path.relative_to(root).as_posix()} {_value_of(path)}" for path in found]
    if call.skill is not None:
        listed.insert(0, f"skill {call.skill.name} {whole_hash(call.skill.folder)}")
    if len(listed) > MAX_NAMED_FILES:
        rest = hashlib.sha256("\n".join(listed[MAX_NAMED_FILES:]).encode()).hexdigest()
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
    """Return the folders in which a line may name files: *start*, and each that it names, also within another one.

    Stops when they are too many.
    """
    found = [start]
    for folder in found:  # grows
        if _is_too_much(found, names):
            break
        for name in names:
            found += [place for place in _places_at(folder, name) if place not in found and place.is_dir()]
    return found


def _is_too_much(folders: Sequence[Path], names: Sequence[str]) -> bool:
    return len(folders) > MAX_FOLDERS or len(folders) * len(names) > MAX_LOOKS


def _files_at(folder: Path, name: str) -> Iterator[Path]:
    """Yield the file with a name, those that fit its pattern, and the modules of interpreters with that name."""
    modules = [name.replace(".", "/")]
    while "/" in modules[-1] and len(modules) <= MAX_MODULE_PARTS:  # pkg.mod.Class.method
        modules.append(modules[-1].rpartition("/")[0])
    ends = (f"{end}{kind}" for end in ("", "/__main__", "/__init__") for kind in (".py", ".pyc"))
    python = (f"{module}{end}" for module, end in product(modules, ends))
    others = (f"{name.rstrip('/')}{ending}" for ending in _ENDINGS)
    for each in (name, *python, *others):
        for place in _places_at(folder, each):
            path = Path(os.path.realpath(place))
            if path.exists() and not path.is_dir():
                yield path
                if path.suffix == ".py":  # compiled code may run in its place
                    yield from (path.parent / "__pycache__").glob(f"{glob.escape(path.stem)}.*.pyc")


def _read_by_programs(folders: Sequence[Path], names: Sequence[str]) -> Iterator[Path]:
    """Yield what the programs among *names* read by themselves in *folders*, and the files that this names."""
    for folder, name in product(folders, find_read_by_itself(names)):
        for place in _places_at(folder, name):
            words = find_words_in(place) if place.is_file() else ()
            further = (each for word in words if not _COMPUTED.search(word) for each in _places_at(folder, word))
            yield from (Path(os.path.realpath(each)) for each in (place, *further) if not each.is_dir())


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


def _value_of(path: Path) -> str:
    """Return what tells the content of a file from any other."""
    try:
        state = path.stat()
        if not stat.S_ISREG(state.st_mode):
            return f"is no file, so it cannot be approved {_unlike_any()}"
        if state.st_size > MAX_HASHED_BYTES:
            return f"{state.st_ino}-{state.st_size}-{state.st_ctime_ns}"
        return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
    except OSError:
        return "sha256:unreadable"


def _unlike_any() -> str:
    return f"({secrets.token_hex(4)})"
