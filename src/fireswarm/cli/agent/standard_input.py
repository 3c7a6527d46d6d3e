"""Text on standard input as a part of the task: ``cat log | agent run "why does it fail?"``."""

from __future__ import annotations

import io
import os
import select
import stat
import sys

from fireswarm.contracts.limits import SNIFF_BYTES
from fireswarm.errors import InvalidInput
from fireswarm.llm.tokens import CHARS_PER_TOKEN, prompt_limit
from fireswarm.processes.output import READ_BYTES, OutputTail
from fireswarm.settings.agent import ModelSettings

STANDARD_INPUT = "-"
"""Task that is read from standard input, however long that takes."""

MAX_BYTES = 200_000
SHARE_OF_PROMPT = 4
"""The text takes at most a quarter of the prompt."""

FIRST_SECONDS = 3.0
"""Time for the first byte if nobody asked for standard input: a pipe may stay open without one."""


def task_with_input(task: str, model: ModelSettings) -> str:
    """Return the task with the text that is piped to this program; ``-`` and "" are the text alone.

    A note on standard error says how much of it is in the task. Raises InvalidInput for an empty task, and for input
    that is not text.
    """
    asked = task.strip() in ("", STANDARD_INPUT)
    content, size = _read(waits=task.strip() == STANDARD_INPUT, limit=_room(model))
    if not content.strip():
        if asked:
            raise InvalidInput("the task is empty: describe it in words, or pipe it to this command")
        return task
    limit = "" if size <= _room(model) else f"; the first and the last of them, {_room(model):,} in all,"
    sys.stderr.write(f"standard input: {size:,} bytes{limit} are part of the task\n")
    return content if asked else f"{task}\n\n# Standard input\n{content}"


def _room(model: ModelSettings) -> int:
    return min(MAX_BYTES, prompt_limit(model) * CHARS_PER_TOKEN // SHARE_OF_PROMPT)


def _read(*, waits: bool, limit: int) -> tuple[str, int]:
    """Return the text on standard input, both ends of it if it is longer than *limit* bytes, and its size."""
    tail, size = OutputTail(limit, "put it into a file of the workspace, and name the file"), 0
    try:
        number = sys.stdin.fileno()
    except (AttributeError, ValueError, io.UnsupportedOperation):  # closed, or replaced by a program that runs this
        text = sys.stdin.read() if isinstance(sys.stdin, io.StringIO) else ""
        tail.add(text.encode("utf-8", "replace"))
        return tail.text(), len(text.encode("utf-8", "replace"))
    if not waits and not _has_input(number):
        return "", 0
    while data := os.read(number, READ_BYTES):
        if b"\0" in data[:SNIFF_BYTES]:
            raise InvalidInput("standard input is not text: put it into a file of the workspace, and name the file")
        tail.add(data)
        size += len(data)
    return tail.text(), size


def _has_input(number: int) -> bool:
    """Return True if standard input is a file, or a pipe from which something arrives in time."""
    mode = os.fstat(number).st_mode
    if stat.S_ISREG(mode):
        return True
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return False
    if sys.platform == "win32" or select.select([number], [], [], FIRST_SECONDS)[0]:
        return True
    sys.stderr.write(
        f"standard input is open, but nothing arrived in {FIRST_SECONDS:g} s: it is not a part of the task "
        f"(`{STANDARD_INPUT}` as the task waits for it)\n"
    )
    return False
