"""Start a command confined by Landlock and seccomp, wait for it, and kill all that it leaves behind.

`launch` runs this module as a program of its own, with the number of a descriptor that holds a description (`marshal`),
then the words of the command. It gives up the rights of root, starts the command in a child, answers the system calls
that the filter passes on, and remains as the parent of all its descendants, also of those that left their parent.
"""

from __future__ import annotations

import ctypes
import errno
import marshal
import os
import resource
import select
import signal
import socket
import stat
import struct
import sys

from fireswarm.processes.confinement.landlock.calls import PassedOnCalls

TYPE_CHECKING = False
if TYPE_CHECKING:  # every import makes the start of every command slower
    from typing import Any

NAME = "landlock"
STARTED = b"started"

EXECUTE, WRITE_FILE, READ_FILE, READ_FOLDER = (1 << bit for bit in range(4))
TRUNCATE, IOCTL_DEVICE = 1 << 14, 1 << 15
ON_FILE = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE
"""Rights that a single file can have; the others are for folders."""

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_BENEATH = 1
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_CAPSET = {"x86_64": 126, "aarch64": 91}
_CAPABILITIES = {"version": 0x20080522, "last": 63}
_KEEP_CAPABILITIES, _AMBIENT, _RAISE = 8, 47, 2
_SET_SECURE_BITS, _NO_CHANGE_WITH_USER = 28, 1 << 2
_SET_DEATH_SIGNAL, _DROP_BOUND, _NO_NEW_PRIVILEGES, _REAP_DESCENDANTS = 1, 24, 38, 36
_SET_FILTER, _NEW_LISTENER = 1, 8

libc = ctypes.CDLL(None, use_errno=True)


class Failure(Exception):
    """The command could not be started; the message has the reason."""


def main() -> int:
    """Start the command of the arguments; returns its exit code, or 128 plus the number of the signal that ended it."""
    with os.fdopen(int(sys.argv[1]), "rb") as file:
        given = marshal.load(file)
    os.set_inheritable(given["report"], False)
    try:
        _give_up_rights(given["user"], given["capabilities"])
        _prctl(_REAP_DESCENDANTS, 1)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is for the command, which is in the same group
        signal.signal(signal.SIGHUP, _end_everything)
        _prctl(_SET_DEATH_SIGNAL, signal.SIGHUP)
        ours, theirs = socket.socketpair()
        child = os.fork()
        if not child:
            ours.close()
            _become(given, sys.argv[2:], theirs)
        theirs.close()
        try:
            calls = PassedOnCalls(
                given["writable"], given["workspace"], given["changes"], given["hidden"], given["kept"]
            )
            return _supervise(child, ours, calls)
        finally:
            _kill_descendants()
    except (Failure, OSError) as error:
        return _tell(error)


def _tell(error: Exception) -> int:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    os.write(2, f"{NAME}: {why}\n".encode())
    return 1


def _become(given: dict[str, Any], words: list[str], channel: socket.socket) -> None:
    """Confine this process, and become the command. Never returns."""
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        _prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _prctl(_NO_NEW_PRIVILEGES, 1)
        _restrict(given)
        os.chdir(given["folder"])
        listener = _filter_calls(bytes.fromhex(given["calls"]))
        socket.send_fds(channel, [b"x"], [listener])
        os.close(listener)
        channel.close()
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.write(given["report"], STARTED)
        os.execvpe(words[0], words, os.environ)
    except FileNotFoundError:
        _tell(Failure(f"cannot start {words[0]}: it does not exist in this view"))
    except (Failure, OSError) as error:
        _tell(error)
    finally:
        os.ftruncate(given["report"], 0)
        os._exit(1)


def _prctl(*values: int) -> None:
    if libc.prctl(*(ctypes.c_ulong(value) for value in (*values, 0, 0, 0)[:5])):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _call(number: int, *values: object) -> int:
    answer = libc.syscall(ctypes.c_long(number), *values)
    if answer < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return answer


def _give_up_rights(user: list[int] | None, kept: int) -> None:
    """Become *user*, a user and a group, if given; keep at most the capabilities in the bits of *kept*."""
    if os.geteuid() != 0:
        return
    for capability in range(_CAPABILITIES["last"] + 1):
        if not kept & 1 << capability:
            libc.prctl(_DROP_BOUND, ctypes.c_ulong(capability), 0, 0, 0)  # the kernel has fewer of them
    if user is not None:
        if kept:  # `access` would not use them otherwise
            _prctl(_SET_SECURE_BITS, _NO_CHANGE_WITH_USER)
        _prctl(_KEEP_CAPABILITIES, 1)
        os.setgroups([])
        os.setresgid(user[1], user[1], user[1])
        os.setresuid(user[0], user[0], user[0])
    header = struct.pack("=Ii", _CAPABILITIES["version"], 0)
    low, high = kept & 0xFFFFFFFF, kept >> 32
    _call(_CAPSET[os.uname().machine], header, struct.pack("=6I", low, low, low, high, high, high))
    for capability in range(_CAPABILITIES["last"] + 1):
        if kept & 1 << capability:
            _prctl(_AMBIENT, _RAISE, capability)


def _restrict(given: dict[str, Any]) -> None:
    """Restrict this process and its children to the given rules of Landlock."""
    fields = (given["handled"], given["handled_network"], given["scoped"])
    attributes = struct.pack(f"={len(fields)}Q", *fields)[: given["attribute_bytes"]]
    ruleset = _call(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    for path, rights in given["rules"]:
        try:
            place = _open_place(path)
        except OSError:  # it was removed or is a link now, or this user may not go there
            continue
        try:
            kind = os.fstat(place).st_mode
            allowed = rights if stat.S_ISDIR(kind) else rights & ON_FILE
            if allowed & given["handled"]:
                rule = struct.pack("=Qi", allowed & given["handled"], place)
                _call(_ADD_RULE, ruleset, _BENEATH, rule, 0)
        finally:
            os.close(place)
    _call(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _open_place(path: str) -> int:
    """Return a descriptor of an absolute path. Raises OSError if a part of it is a link."""
    place = os.open("/", os.O_PATH | os.O_CLOEXEC)
    for part in path.strip("/").split("/") if path != "/" else ():
        try:
            below = os.open(part, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=place)
        finally:
            os.close(place)
        place = below
        if stat.S_ISLNK(os.fstat(place).st_mode):
            os.close(place)
            raise OSError(errno.ELOOP, "a link has taken its place", path)
    return place


def _filter_calls(program: bytes) -> int:
    """Load the filter of system calls; returns the descriptor that receives the calls which it passes on."""
    steps = ctypes.create_string_buffer(program, len(program))
    described = struct.pack("@HP", len(program) // 8, ctypes.addressof(steps))
    return _call(_SECCOMP[os.uname().machine], _SET_FILTER, _NEW_LISTENER, described)


def _supervise(child: int, channel: socket.socket, calls: PassedOnCalls) -> int:
    """Answer the calls that the filter passes on until *child* has ended; returns its exit code."""
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _wake)
    poll = select.poll()
    poll.register(woken, select.POLLIN)
    poll.register(channel, select.POLLIN)
    code: int | None = None
    while code is None:
        code = _reap(child)
        if code is not None:
            break
        for number, events in poll.poll():
            if number == woken:
                os.read(woken, 4_096)
            elif number == channel.fileno():
                poll.unregister(channel)
                _, descriptors, _, _ = socket.recv_fds(channel, 1, 1)
                channel.close()
                for descriptor in descriptors:
                    calls.listener = descriptor
                    poll.register(descriptor, select.POLLIN)
            elif events & select.POLLIN:
                calls.answer()
            else:  # no process is left that could call
                poll.unregister(number)
    return code


def _wake(*_: object) -> None:
    """Do nothing: the signal ends a wait."""


def _reap(child: int) -> int | None:
    """Forget ended descendants; returns the exit code of *child* if it is one of them."""
    code: int | None = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code if code is not None else 1
        if not pid:
            return code
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            code = 128 - code if code < 0 else code


def _kill_descendants() -> None:
    """Kill all descendants: the kernel makes this process the parent of each one whose parent has ended."""
    while True:
        for pid in _children():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _children() -> list[int]:
    found: list[int] = []
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = file.read().rpartition(b")")[2].split()[1]
            except (OSError, IndexError):
                continue
            if int(parent) == os.getpid():
                found.append(int(name))
    return found


def _end_everything(*_: object) -> None:
    """End with the program that started this one."""
    _kill_descendants()
    os._exit(1)
