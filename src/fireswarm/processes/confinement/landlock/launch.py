"""The start of a command confined by Landlock and seccomp: the rules for the kernel, and private folders.

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
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from platform import machine

from fireswarm.errors import PlaceRefused, SandboxRefused
from fireswarm.processes.confinement.bubblewrap import Launch, memory_file
from fireswarm.processes.confinement.landlock import calls, start
from fireswarm.processes.confinement.landlock.names import CALLERS_PATH
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LandlockRules:
    """What a command may open. It starts in ``folder``.

    ``readable`` and ``writable`` are folders and files with all that is below them; ``listed`` are folders whose names
    it may list. If it ``changes`` its ``workspace``, it may also make and change other names there than those of
    `names`, ``kept`` and ``hidden``; with ``watches_reading``, it reads them too, even if they are not ``readable``.
    ``owner`` are the user and the group that it becomes; ``capabilities`` the bits of the privileges of root that it
    keeps. ``files`` are contents by paths, and ``places`` are folders by paths, that stand in its words and in its
    environment for the places where they are.
    """

    folder: Path
    readable: Sequence[Path | str] = ()
    writable: Sequence[Path | str] = ()
    listed: Sequence[Path | str] = ()
    workspace: Path | None = None
    changes: bool = False
    watches_reading: bool = False
    hidden: Sequence[Path] = ()
    kept: Sequence[Path] = ()
    network: bool = False
    strict: bool = False
    owner: tuple[int, int] | None = None
    capabilities: int = 0
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    places: Mapping[str, Path] = field(default_factory=dict[str, Path])


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
def confine_with_landlock(rules: LandlockRules, environment: Mapping[str, str]) -> Generator[Launch]:
    """Yield the start of a command with *rules*, which lasts until the end of the block.

    Its home and its folder for temporary files are new, and removed at the end. Raises SandboxRefused without Landlock.
    """
    version = landlock_version()
    if not version:
        raise SandboxRefused("this kernel has no Landlock")
    with ExitStack() as stack:
        temporary = tempfile.TemporaryDirectory(prefix="fireswarm-command-", ignore_cleanup_errors=True)
        private = Path(stack.enter_context(temporary)).resolve()
        places = {**{path: str(place) for path, place in rules.places.items()}, **_private_files(private, rules)}
        own = {"TMPDIR": str(private / "tmp"), **({} if rules.strict else {"HOME": str(private / "home")})}
        report = stack.enter_context(memory_file(b""))
        told = _description(rules, private, version, report)
        described = stack.enter_context(memory_file(marshal.dumps(told)))
        prefix = [sys.executable, "-I", "-S", "-c", _PROGRAM, str(described)]
        launch = Launch(prefix, {}, (described, report), report, start.STARTED, places, signal.SIGHUP)
        variables = {name: launch.word(value) for name, value in environment.items()} | own
        for name in {"PATH", CALLERS_PATH} & variables.keys():
            variables[name] = _visible_part(variables[name], rules)
        yield replace(launch, environment=variables)


def _visible_part(path: str, rules: LandlockRules) -> str:
    """Return the folders of a PATH that the command may read: a shell stops at the first program it may not start."""
    seen = [os.path.realpath(place) for place in (*rules.readable, *rules.writable)]
    listed = [(folder, os.path.realpath(folder)) for folder in path.split(os.pathsep) if folder.startswith("/")]
    kept = [folder for folder, real in listed if any(f"{real}/".startswith(f"{place}/") for place in seen)]
    return os.pathsep.join(kept)


def _private_files(private: Path, rules: LandlockRules) -> dict[str, str]:
    """Make the folders of the command, and its files; returns where they are."""
    made = [private / name for name in ("home", "tmp", "files")]
    for folder in made:
        folder.mkdir(0o700)
    found: dict[str, str] = {}
    for number, (path, content) in enumerate(rules.files.items()):
        place = made[-1] / f"{number}-{Path(path).name}"
        place.write_bytes(content)
        made.append(place)
        found[path] = str(place)
    if rules.owner is not None:
        for place in (private, *made):
            os.chown(place, *rules.owner)
    return found


def _description(rules: LandlockRules, private: Path, version: int, report: int) -> dict[str, object]:
    """Return what `start` needs to know."""
    held = [str(place) for place in (*([rules.workspace] if rules.workspace else ()), *rules.writable)]
    for place in held:
        if os.path.realpath(place) != place:
            raise PlaceRefused(f"{place} cannot be a part of a confined command: a link has taken its place")

    def name(place: Path | str) -> str:
        """Return the path without links, except those that have appeared where other code works."""
        inside = any(str(place) == each or str(place).startswith(f"{each}/") for each in held)
        return str(place) if inside else os.path.realpath(place)

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
