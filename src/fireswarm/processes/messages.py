"""Messages over a pipe, each after its length. Child processes import this module, so it imports nothing slow."""

from __future__ import annotations

import os
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

END = struct.Struct("<dd")
"""Format of the file with the end of a call: the time of `steady_seconds`, and the grace after a standstill in seconds.
"""

CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""The clock of `steady_seconds`."""

LENGTH = struct.Struct(">Q")
"""Format of the length in bytes that precedes each message."""

Elsewhere = Callable[..., tuple[int, str]]
"""Runs a program in another process: its words, its view, its environment, its time limit. As `run.run_confined`."""

elsewhere: list[Elsewhere] = []
"""What replaces `run.run_confined` in a process that is confined itself, and cannot confine others."""


def steady_seconds() -> float:
    """Seconds of a clock that all processes of the machine share and nobody sets; it counts suspended time."""
    return time.clock_gettime(CLOCK)


def import_folders() -> list[str]:
    """Return the folders from which a child imports: those of this process without its current folder.

    What a model runs may write modules there. So the folders that PYTHONPATH names within it are left out as well,
    except the one from which this program comes.
    """
    here, own = Path.cwd(), Path(__file__).resolve().parents[2]
    named = {os.path.realpath(folder) for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder}
    found = ((folder, Path(os.path.realpath(folder))) for folder in sys.path if Path(folder).is_absolute())
    return [
        folder
        for folder, real in found
        if real == own or not (real == here or (real.is_relative_to(here) and str(real) in named))
    ]


def write_message(pipe: IO[bytes], message: bytes) -> None:
    """Write one message after its length."""
    pipe.write(LENGTH.pack(len(message)))
    pipe.write(message)
    pipe.flush()


def read_message(pipe: IO[bytes], limit: int | None = None) -> bytes:
    """Read one message. Raises EOFError if the other end is closed, and ValueError for more than *limit* bytes."""
    head = pipe.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError("the other end is closed")
    [length] = LENGTH.unpack(head)
    if limit is not None and length > limit:
        raise ValueError(f"a message of {length} bytes is longer than {limit}")
    message = pipe.read(length)
    if len(message) < length:
        raise EOFError("the other end was closed in the middle of a message")
    return message


def take_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """Return the parent's pipes, and connect the standard streams to the null device for the code that runs here."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115 - they stay open
    return requests, answers
