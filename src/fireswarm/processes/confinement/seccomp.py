"""Seccomp filter: system calls that a sandboxed process may not make, as a program for the kernel. Pure.

Namespaces isolate the process. This filter blocks the parts that namespaces do not cover (sockets to the hypervisor,
the keyring, unaccounted memory) and parts of the kernel with known escapes.
"""

from __future__ import annotations

import errno
import struct

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

_MACHINES: dict[str, tuple[int, int, int, int, int]] = {
    # audit number, index into the numbers above, clone, socket, socketpair
    "x86_64": (0xC000003E, 0, 56, 41, 53),
    "aarch64": (0xC00000B7, 1, 220, 198, 199),
}
_CLONE3 = 435
_NEW_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET."""

_SOCKETS = (1, 2, 10)
"""AF_UNIX, AF_INET and AF_INET6 stay within the sandbox's network.

AF_VSOCK reaches the hypervisor despite the network namespace; AF_NETLINK reaches large parts of the kernel.
"""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN, _AND = 0x20, 0x15, 0x35, 0x45, 0x06, 0x54
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER, _MACHINE, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24
_DATAGRAM, _KIND_OF_SOCKET = 2, 0xF
_X32 = 0x40000000
"""Offset of a second set of numbers for the same calls on x86_64."""


def call_filter(machine: str, *, strict: bool, local_sockets: bool = True) -> bytes | None:
    """Return the filter for ``platform.machine()`` as an array of ``struct sock_filter``, or None if unsupported.

    With *strict*, it also denies shared memory, semaphores and message queues. Without *local_sockets*, a program
    cannot connect to socket files of other programs.
    """
    if machine not in _MACHINES:
        return None
    audit, column, clone, socket, socketpair = _MACHINES[machine]
    sockets = _SOCKETS if local_sockets else _SOCKETS[1:]
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
    for numbers in ({**_UNACCOUNTED, **_DENIED} if strict else _DENIED).values():
        code += [_step(_EQUAL, numbers[column], 0, 1), _step(_RETURN, _ERROR | errno.EPERM)]
    if not local_sockets:  # each of a pair of datagram sockets can send to any other socket
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


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
