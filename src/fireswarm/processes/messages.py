"""Messages over a pipe, each after its length. Imported by child processes: it imports nothing that takes time."""

from __future__ import annotations

import struct
from typing import IO

LENGTH = struct.Struct(">Q")
"""Format of the length in bytes that precedes each message."""


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
        raise EOFError("the other end closed in the middle of a message")
    return message
