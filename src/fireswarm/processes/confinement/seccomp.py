"""Seccomp filter: system calls that a sandboxed process may not make, as a program for the kernel. Pure.

Namespaces isolate the process. This filter blocks the parts that namespaces do not cover (sockets to the hypervisor,
the keyring, unaccounted memory) and parts of the kernel with known escapes.
"""

from __future__ import annotations

import errno
import struct
from dataclasses import dataclass

_UNACCOUNTED: dict[str, tuple[int, int]] = {
    # name: number on x86_64, on aarch64
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194), "shmat": (30, 196),
    "shmctl": (31, 195), "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
}  # fmt: skip
"""Memory that no limit of the sandbox covers; developers' programs use it."""

_DENIED: dict[str, tuple[int, int]] = {
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "unshare": (272, 97), "setns": (308, 268),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "vmsplice": (278, 75),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "reboot": (169, 142), "swapon": (167, 224),
    "swapoff": (168, 225), "acct": (163, 89), "quotactl": (179, 60), "syslog": (103, 116),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171),
}  # fmt: skip

_OF_OTHERS: dict[str, tuple[int, int]] = {
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "msgget": (68, 186), "msgsnd": (69, 189),
    "msgrcv": (70, 188), "msgctl": (71, 187), "semget": (64, 190), "semop": (65, 193), "semctl": (66, 191),
    "semtimedop": (220, 192), "mq_open": (240, 180), "mq_unlink": (241, 181), "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440), "migrate_pages": (256, 238), "move_pages": (279, 239),
}  # fmt: skip
"""Calls on memory, queues and semaphores of other programs, which only namespaces separate."""

_ATTRIBUTES = (
    *((188, 5), (189, 6), (190, 7), (197, 14), (198, 15), (199, 16)),
    *((463, 463), (466, 466), (469, 469)),
)
"""Calls that change extended attributes of files, set and remove, then those of newer kernels: Landlock does not limit
them.
"""

_ON_PROCESSES = (
    ((302, 261), 0), ((144, 119), 0), ((142, 118), 0), ((314, 274), 0), ((203, 122), 0), ((141, 140), 1),
    ((251, 30), 1),
)  # fmt: skip
"""Calls that change limits, scheduling and priority of a process, and the argument that names it, 0 for the caller:
prlimit64, sched_setscheduler, sched_setparam, sched_setattr, sched_setaffinity, setpriority, ioprio_set.
"""

_TRUNCATE = (76, 45)

_MACHINES: dict[str, tuple[int, int, int, int, int]] = {
    # audit number, index into the numbers above, clone, socket, socketpair
    "x86_64": (0xC000003E, 0, 56, 41, 53),
    "aarch64": (0xC00000B7, 1, 220, 198, 199),
}
_CLONE3, _OPENAT2 = 435, 437
_NEW_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET."""

_SOCKETS = (1, 2, 10)
"""AF_UNIX, AF_INET and AF_INET6 stay within the sandbox's network.

AF_VSOCK reaches the hypervisor despite the network namespace; AF_NETLINK reaches large parts of the kernel.
"""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN, _AND = 0x20, 0x15, 0x35, 0x45, 0x06, 0x54
_ALLOW, _ERROR, _KILL, _PASS_ON = 0x7FFF0000, 0x00050000, 0x80000000, 0x7FC00000
_NUMBER, _MACHINE, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24
_DATAGRAM, _KIND_OF_SOCKET = 2, 0xF
_X32 = 0x40000000
"""Offset of a second set of numbers for the same calls on x86_64."""


@dataclass(frozen=True, slots=True)
class CallRules:
    """What a program may call. With ``strict``, no shared memory, semaphores and message queues.

    Without ``local_sockets``, it cannot connect to socket files of other programs, and without ``network`` it has no
    sockets of the internet. ``shared`` is for a program that shares its namespaces with others: it gets nothing of
    their memory and queues, cannot change their limits, and its calls in ``watched`` are passed on to the program that
    listens. ``no_truncate`` denies the call that changes the size of a file by its path. ``watched`` has numbers on
    x86_64 and on aarch64. So do ``opens``, each with the argument that holds its flags: these calls are passed on if
    they have one of ``open_flags``, or always if that is 0.
    """

    strict: bool = False
    local_sockets: bool = True
    network: bool = True
    shared: bool = False
    watched: tuple[tuple[int, int], ...] = ()
    opens: tuple[tuple[tuple[int, int], int], ...] = ()
    open_flags: int = 0
    no_truncate: bool = False

    @property
    def denied(self) -> list[tuple[int, int]]:
        """The numbers of all calls that are denied."""
        calls = {**_DENIED, **(_UNACCOUNTED if self.strict else {}), **(_OF_OTHERS if self.shared else {})}
        return [*calls.values(), *([_TRUNCATE] if self.no_truncate else [])]


def call_filter(machine: str, calls: CallRules) -> bytes | None:
    """Return the filter for ``platform.machine()`` as an array of ``struct sock_filter``, or None if unsupported."""
    if machine not in _MACHINES:
        return None
    audit, column, clone, socket, socketpair = _MACHINES[machine]
    sockets = (*(_SOCKETS[:1] if calls.local_sockets else ()), *(_SOCKETS[1:] if calls.network else ()))
    code = [
        _step(_LOAD, _MACHINE),
        _step(_EQUAL, audit, 1, 0),
        _step(_RETURN, _KILL),
        _step(_LOAD, _NUMBER),
        _step(_AT_LEAST, _X32, 0, 1),
        _step(_RETURN, _KILL),
        _step(_EQUAL, _CLONE3, 0, 1),  # its flags are in memory, which a filter cannot read; libraries then use clone
        _step(_RETURN, _ERROR | errno.ENOSYS),
    ]
    for listed, answer in (
        (calls.denied, _ERROR | errno.EPERM),
        (_ATTRIBUTES if calls.shared else (), _ERROR | errno.EOPNOTSUPP),
        (calls.watched, _PASS_ON),
    ):
        for numbers in listed:
            if numbers[column] >= 0:  # this machine has the call
                code += [_step(_EQUAL, numbers[column], 0, 1), _step(_RETURN, answer)]
    code += [*_judge_opens(calls, column), *(_judge_calls_on_processes(column) if calls.shared else [])]
    if not calls.local_sockets:  # each of a pair of datagram sockets can send to any other socket
        code += [
            _step(_EQUAL, socketpair, 0, 5),
            _step(_LOAD, _SECOND_ARGUMENT),
            _step(_AND, _KIND_OF_SOCKET),
            _step(_EQUAL, _DATAGRAM, 0, 1),
            _step(_RETURN, _ERROR | errno.EPERM),
            _step(_RETURN, _ALLOW),
        ]
    code += [
        _step(_EQUAL, clone, 0, 4),
        _step(_LOAD, _FIRST_ARGUMENT),
        _step(_ANY_BIT, _NEW_NAMESPACES, 0, 1),
        _step(_RETURN, _ERROR | errno.EPERM),
        _step(_RETURN, _ALLOW),
        _step(_EQUAL, socket, 0, len(sockets) + 2),
        _step(_LOAD, _FIRST_ARGUMENT),
        *(_step(_EQUAL, family, len(sockets) - at, 0) for at, family in enumerate(sockets)),
        _step(_RETURN, _ERROR | errno.EAFNOSUPPORT),
        _step(_RETURN, _ALLOW),
    ]
    return b"".join(code)


def _judge_opens(calls: CallRules, column: int) -> list[bytes]:
    """Return the steps that pass on calls which open files."""
    code: list[bytes] = []
    for numbers, argument in calls.opens:
        if numbers[column] >= 0:
            code += [
                _step(_EQUAL, numbers[column], 0, 4),
                _step(_LOAD, _FIRST_ARGUMENT + 8 * argument),
                _step(_ANY_BIT, calls.open_flags, 0, 1) if calls.open_flags else _step(_AT_LEAST, 0, 0, 1),
                _step(_RETURN, _PASS_ON),
                _step(_RETURN, _ALLOW),
            ]
    if calls.opens:  # its flags are in memory; programs then use openat
        code += [_step(_EQUAL, _OPENAT2, 0, 1), _step(_RETURN, _ERROR | errno.ENOSYS)]
    return code


def _judge_calls_on_processes(column: int) -> list[bytes]:
    """Return the steps that deny changes of other processes."""
    code: list[bytes] = []
    for numbers, argument in _ON_PROCESSES:
        code += [
            _step(_EQUAL, numbers[column], 0, 4),
            _step(_LOAD, _FIRST_ARGUMENT + 8 * argument),
            _step(_EQUAL, 0, 1, 0),
            _step(_RETURN, _ERROR | errno.EPERM),
            _step(_RETURN, _ALLOW),
        ]
    return code


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
