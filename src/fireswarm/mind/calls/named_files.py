"""Name the files that a call reads, with their hashes, so that an approval is valid for these files only."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from fireswarm.contracts.skills.permissions import MAX_NAMED_FILES
from fireswarm.mind import gate
from fireswarm.skills.command_rules import CommandsOf
from fireswarm.skills.packs.content_hash import content_hash

HASH_CHARS = 16
MAX_HASHED_BYTES = 50_000_000
"""Of a larger file, its size and time count."""

MAX_NAME_CHARS = 1_000
"""Longer texts of an input are no names of files."""


def files_of(call: gate.Call, workspace: Path) -> tuple[str, ...]:
    """Return the files of *workspace* that a call names, ``NAME sha256:HASH`` each, and the skill whose code runs.

    Programs of the system, folders, and names that a shell computes are not among them.
    """
    root = Path(os.path.realpath(workspace))
    folder = call.cwd or root
    named: dict[Path, str] = {}
    for name in dict.fromkeys(_names_in(call)):
        if not 0 < len(name) <= MAX_NAME_CHARS or "\0" in name:
            continue
        path = Path(os.path.realpath(folder / name))
        if path.is_relative_to(root) and path.is_file():
            named[path] = f"{path.relative_to(root).as_posix()} sha256:{_hash_of(path)}"
    listed = [*named.values()]
    if call.skill is not None:
        listed.insert(0, f"skill {call.skill.name} {content_hash(call.skill.folder)}")
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


def _hash_of(path: Path) -> str:
    try:
        state = path.stat()
        if state.st_size > MAX_HASHED_BYTES:
            return f"{state.st_size}-{state.st_mtime_ns}"
        return hashlib.sha256(path.read_bytes()).hexdigest()[:HASH_CHARS]
    except OSError:
        return "unreadable"
