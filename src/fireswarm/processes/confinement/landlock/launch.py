"""The start of a command confined by Landlock and seccomp: the rules for the kernel.

A kernel before 5.13 has no Landlock. Later versions added rights, which are used where the kernel has them: moves
between folders (5.19), changes of size by path (6.2), connections over TCP (6.7), device controls (6.10), signals and
abstract sockets (6.12).
"""

from __future__ import annotations

import ctypes
import marshal
import os
import signal
import sys
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from platform import machine

from fireswarm.errors import PlaceRefused, SandboxRefused
from fireswarm.processes.confinement.bubblewrap import Launch, memory_file
from fireswarm.processes.confinement.landlock import calls, start
from fireswarm.processes.confinement.paths.rules import PathRules, private_folders
from fireswarm.processes.confinement.seccomp import CallRules, call_filter

_VERSION_ONLY = 1
_CREATE_RULESET = 444

READ = start.EXECUTE | start.READ_FILE | start.READ_FOLDER
LIST = start.READ_FOLDER
_REMOVE_FOLDER, _REMOVE_FILE = 1 << 4, 1 << 5
_MAKE_FOLDER, _MAKE_FILE, _MAKE_SOCKET, _MAKE_PIPE, _MAKE_LINK = 1 << 7, 1 << 8, 1 << 9, 1 << 10, 1 << 12
_MOVE = 1 << 13
CHANGE = (
    *(READ, start.WRITE_FILE, start.TRUNCATE, _REMOVE_FOLDER, _REMOVE_FILE, _MOVE),
    *(_MAKE_FOLDER, _MAKE_FILE, _MAKE_SOCKET, _MAKE_PIPE, _MAKE_LINK),
)
"""Rights on a folder that a command may change. It makes no devices."""

WRITE = sum(CHANGE)
USE = start.READ_FILE | start.WRITE_FILE

_RIGHTS_OF = {1: 1 << 13, 2: 1 << 14, 3: 1 << 15, 5: 1 << 16}
"""First bit that a version does not know, by the version; a later version than the last one knows no more here."""

_TRUNCATES, _HAS_NETWORK, _HAS_SCOPES = 3, 4, 6
"""Versions from which Landlock covers changes of size, TCP, and signals with abstract sockets."""

_SOURCE = str(Path(start.__file__).resolve().parents[4])
_PROGRAM = f"import sys; sys.path[:0] = [{_SOURCE!r}]; from {start.__name__} import main; sys.exit(main())"

_TCP, _SCOPES = 0b11, 0b11
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_KERNEL = ("/proc", "/sys/devices/system/cpu")


@cache
def landlock_version() -> int:
    """Return the version of Landlock that the kernel has; 0 without it."""
    if sys.platform != "linux" or call_filter(machine(), CallRules()) is None:
        return 0
    answer = ctypes.CDLL(None, use_errno=True).syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION_ONLY)
    return max(0, answer)


def missing_limits() -> list[str]:
    """Return what the Landlock of this kernel does not prevent, in words."""
    return ["signals to other processes of the same user"] if landlock_version() < _HAS_SCOPES else []


@contextmanager
def confine_with_landlock(rules: PathRules, environment: Mapping[str, str]) -> Generator[Launch]:
    """Yield the start of a command with *rules*, which lasts until the end of the block.

    For its private folders see `private_folders`. Raises SandboxRefused without Landlock.
    """
    version = landlock_version()
    if not version:
        raise SandboxRefused("this kernel has no Landlock")
    with private_folders(rules) as private, ExitStack() as stack:
        report = stack.enter_context(memory_file(b""))
        told = _description(rules, private.folder, version, report)
        described = stack.enter_context(memory_file(marshal.dumps(told)))
        prefix = [sys.executable, "-I", "-S", "-c", _PROGRAM, str(described)]
        launch = Launch(prefix, {}, (described, report), report, start.STARTED, private.places, signal.SIGHUP)
        yield replace(launch, environment=private.environment(launch, environment))


def _description(rules: PathRules, private: Path, version: int, report: int) -> dict[str, object]:
    """Return what `start` needs to know."""
    own = (*([rules.workspace] if rules.workspace else ()), *rules.writable)
    held = {str(place) for place in (*own, *rules.held)}
    for place in held:
        if os.path.realpath(place) != place:
            raise PlaceRefused(f"{place} cannot be a part of a confined command: a link has taken its place")

    def name(place: Path | str) -> str:
        """Return the path without links, except those that have appeared where other code works."""
        around = (str(place), *map(str, Path(place).parents))
        return os.path.realpath(place) if held.isdisjoint(around) else str(place)

    known = _RIGHTS_OF[max(each for each in _RIGHTS_OF if each <= version)] - 1
    writable = [*rules.writable, private / "home", private / "tmp"]
    granted: list[tuple[Path | str, int]] = [
        *((place, LIST) for place in rules.listed),
        *((place, READ) for place in (*rules.readable, *_KERNEL, private / "files")),
        *((place, USE) for place in _DEVICES),
        *((place, WRITE) for place in writable),
    ]
    allowed = CallRules(
        strict=rules.strict,
        local_sockets=False,
        network=rules.network,
        shared=True,
        watched=(*calls.ON_FILES.values(), *(calls.ON_NAMES.values() if rules.workspace else ())),
        opens=tuple((calls.OPENS[name], at) for name, at in calls.OPEN_FLAGS.items()) if rules.workspace else (),
        open_flags=0 if rules.watches_reading else calls.CHANGING,
        no_truncate=version < _TRUNCATES and not rules.workspace,
    )
    return {
        "user": rules.owner,
        "capabilities": rules.capabilities,
        "folder": str(rules.folder),
        "rules": [(name(place), rights) for place, rights in granted],
        "workspace": str(rules.workspace) if rules.workspace else None,
        "changes": rules.changes,
        "writable": [name(place) for place in writable],
        "hidden": [str(place) for place in rules.hidden],
        "kept": [str(place) for place in rules.kept],
        "handled": known,
        "handled_network": 0 if rules.network else _TCP,
        "scoped": _SCOPES,
        "attribute_bytes": 24 if version >= _HAS_SCOPES else 16 if version >= _HAS_NETWORK else 8,
        "calls": (call_filter(machine(), allowed) or b"").hex(),
        "report": report,
    }
