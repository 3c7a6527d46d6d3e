"""The command line of bubblewrap for every view: namespaces, mounts, no privileges, and a system call filter."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from platform import machine

from fireswarm.contracts.regular_file import open_place
from fireswarm.errors import PlaceRefused, SandboxRefused
from fireswarm.processes.confinement.mounts import Replacements, system_mounts
from fireswarm.processes.confinement.programs import find_program
from fireswarm.processes.confinement.seccomp import CallRules, call_filter

MAX_REPORT_BYTES = 65_536
NAMESPACES = (
    *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    *("--die-with-parent", "--new-session", "--cap-drop", "ALL"),
)
NO_NETWORK = ("--unshare-net",)

USER = 1000
"""User and group id that the command sees as its own."""

TRIAL_SECONDS = 60.0

_OF_THE_KERNEL = ("/proc", "/sys", "/dev")


@dataclass(frozen=True, slots=True)
class Launch:
    """The start of a confined command: the arguments before it, and the environment and descriptors of the process.

    ``report`` is the file in which the launcher writes ``proof`` if it has started the command. ``places`` are the
    real places of paths that the words of the command name. At ``end_signal``, the launcher kills all descendants.
    ``set_aside`` are new names of its workspace, for people, that were given another name at its end. If one of the
    places of ``covered`` is replaced, the command has to end: it is no longer protected or hidden.
    """

    prefix: list[str]
    environment: dict[str, str]
    pass_fds: tuple[int, ...] = ()
    report: int | None = None
    proof: bytes = b'"exit-code"'
    places: Mapping[str, str] = field(default_factory=dict[str, str])
    end_signal: int = 0
    set_aside: list[str] = field(default_factory=list[str])
    covered: Replacements | None = None

    def has_failed(self) -> bool:
        """Return True if the launcher ended without starting the command."""
        return self.report is not None and self.proof not in os.pread(self.report, MAX_REPORT_BYTES, 0)

    def word(self, word: str) -> str:
        """Return a word of the command, or a variable, with the real place of a path that it names."""
        for path, place in self.places.items():
            if word == path or word.startswith(f"{path}/"):
                return place + word.removeprefix(path)
        return word


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """The environment of a command: bubblewrap arguments for its ``rights`` and ``mounts``, and further ``files``.

    What is mounted of the places ``held``, in which other code may work, is opened without following links first.
    ``folder`` is its current folder; ``network`` is True if it has a network. The words ``start_as`` precede it. For
    ``strict`` and ``local_sockets`` see `call_filter`.
    """

    rights: Sequence[str]
    mounts: Sequence[str]
    folder: Path
    held: Sequence[Path] = ()
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    network: bool = False
    start_as: Sequence[str] = ()
    strict: bool = False
    local_sockets: bool = True


@contextmanager
def isolate(isolation: Isolation, environment: dict[str, str]) -> Generator[Launch]:
    """Yield the start of a command with *isolation*, which lasts until the end of the block.

    Raises SandboxRefused without bubblewrap.
    """
    program, calls = find_bubblewrap(strict=isolation.strict, local_sockets=isolation.local_sockets)
    with ExitStack() as stack:
        covered = Replacements(_covered_places(isolation.mounts))
        stack.callback(covered.close)
        numbers = [stack.enter_context(memory_file(content)) for content in (calls, b"", *isolation.files.values())]
        filtering, report, *files = numbers.copy()
        mounts = _hold(isolation, numbers, stack)
        words = [program, *NAMESPACES, *isolation.rights, *(() if isolation.network else NO_NETWORK), *mounts]
        for place, number in zip(isolation.files, files, strict=True):
            words += [*folders(Path(place)), "--perms", "0444", "--ro-bind-data", str(number), place]
        words += ["--remount-ro", "/", "--chdir", str(isolation.folder)]
        words += ["--seccomp", str(filtering), "--json-status-fd", str(report), "--", *isolation.start_as]
        yield Launch(words, environment, tuple(numbers), report, covered=covered)


def _covered_places(mounts: Sequence[str]) -> list[Path]:
    """Return the files and folders that a mount protects or hides, each in its own place: no compiled code, no sockets.

    Programs replace these two as they run.
    """
    words = [*mounts, "", ""]
    found = [
        Path(words[index + 2] if word == "--ro-bind" else words[index + 1])
        for index, word in enumerate(words)
        if word == "--tmpfs" or (word == "--ro-bind" and words[index + 1] in ("/dev/null", words[index + 2]))
    ]
    own = [place for place in found if place.suffix != ".pyc" and not str(place).startswith(_OF_THE_KERNEL)]
    return [place for place in own if place.is_file() or place.is_dir()]


def _hold(isolation: Isolation, numbers: list[int], stack: ExitStack) -> list[str]:
    """Return the arguments for the mounts, with descriptors in the place of paths that other code could exchange.

    The descriptors are added to *numbers*, and closed by *stack*. Raises SandboxRefused if a link has appeared.
    """
    held = tuple(f"{str(place).rstrip('/')}/" for place in isolation.held)
    words = list(isolation.mounts)
    for index, word in enumerate(words):
        if word in ("--bind", "--ro-bind") and f"{words[index + 1]}/".startswith(held):
            number = hold_place(Path(words[index + 1]), stack)
            numbers.append(number)
            words[index : index + 2] = [f"{word}-fd", str(number)]
    return words


def hold_place(place: Path, stack: ExitStack) -> int:
    """Return a descriptor of *place*, which *stack* closes. Raises PlaceRefused if a part of the path is a link."""
    try:
        number = open_place(place)
    except OSError as error:
        raise PlaceRefused(f"{place} cannot be a part of a confined command: {error.strerror}") from error
    stack.callback(os.close, number)
    return number


def find_bubblewrap(*, strict: bool = False, local_sockets: bool = True) -> tuple[str, bytes]:
    """Return the path of bubblewrap and the filter of system calls. Raises SandboxRefused if there is none."""
    program, calls = find_program("bwrap"), call_filter(machine(), CallRules(strict, local_sockets))
    if sys.platform != "linux" or calls is None:
        raise SandboxRefused(f"code cannot be confined on {sys.platform} {machine()}")
    if program is None:
        raise SandboxRefused("bubblewrap is not installed: `apt-get install bubblewrap` (Debian, Ubuntu)")
    return program, calls


def folders(place: Path) -> list[str]:
    """Return the arguments that create the folders above *place*.

    Folders that bubblewrap creates implicitly are readable only by root.
    """
    return [word for parent in place.parents[-2::-1] for word in ("--perms", "0755", "--dir", str(parent))]


@contextmanager
def memory_file(content: bytes) -> Generator[int]:
    """Open an anonymous file with *content* and yield its descriptor, at its beginning."""
    number = os.memfd_create("sandbox", os.MFD_CLOEXEC)
    try:
        with open(number, "wb", closefd=False) as file:
            file.write(content)
        os.lseek(number, 0, os.SEEK_SET)
        yield number
    finally:
        os.close(number)


def user_rights(owner: tuple[int, int] | None) -> list[str]:
    """Return the arguments for user and privileges. Root needs no user namespace to act as another user."""
    if owner is not None:
        return ["--hostname", "sandbox", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    return ["--hostname", "sandbox", "--unshare-user", "--disable-userns", "--uid", str(USER), "--gid", str(USER)]


def start_as(owner: tuple[int, int] | None, folder: Path) -> list[str]:
    """Return the prefix that gives up the last privileges of root, enters *folder*, and starts the command."""
    if owner is None:
        return []
    words = ["/usr/bin/setpriv", f"--reuid={owner[0]}", f"--regid={owner[1]}", "--clear-groups", "--inh-caps=-all"]
    return [*words, "/usr/bin/env", f"--chdir={folder}"]


@cache
def reason_against(program: str, owner: tuple[int, int] | None) -> str:
    """Test *program* once, and return the reason why commands cannot be confined here, or "".

    The test runs in another session: otherwise Ctrl+C at that moment would end it, and all later commands would be
    refused.
    """
    arguments = [*NAMESPACES, *user_rights(owner), *NO_NETWORK, "--proc", "/proc", *system_mounts()]
    held = os.open("/usr", os.O_PATH | os.O_CLOEXEC)
    command = [program, *arguments, "--ro-bind-fd", str(held), "/usr", "--", *start_as(owner, Path("/")), "/bin/true"]
    try:
        tried = subprocess.run(
            command,
            capture_output=True,
            timeout=TRIAL_SECONDS,
            check=False,
            env={},
            start_new_session=True,
            pass_fds=(held,),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    finally:
        os.close(held)
    return (
        tried.stderr.decode("utf-8", "replace").strip() or f"exit code {tried.returncode}" if tried.returncode else ""
    )
