"""Read what a person types: on a terminal with line editing and history, and a paste as one message."""

from __future__ import annotations

import contextlib
import io
import json
import os
import select
import sys
import threading
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from anyio import from_thread
from anyio.lowlevel import current_token

from fireswarm.redaction import Redactor, sanitize
from fireswarm.settings.run_folders import make_kept_folder

MAX_HISTORY = 500
"""Messages that the history keeps."""

PASTE_SECONDS = 0.05
"""The rest of a long paste follows within this time when its beginning has been read."""


class StoppedByPerson(Exception):  # what happened, not a fault
    """Ctrl+C was typed at a prompt."""


@dataclass(frozen=True, slots=True)
class ChatHistory:
    """The messages of earlier chats in a file that only its owner can read, one JSON string a line, without secrets."""

    path: Path
    redact: Redactor

    def load(self) -> list[str]:
        """Return the messages, the oldest first. Damaged lines are left out."""
        messages: list[str] = []
        if self.path.is_symlink() or not self.path.is_file():
            return messages
        with contextlib.suppress(OSError):
            for line in self.path.read_bytes().split(b"\n")[-MAX_HISTORY - 1 :]:
                with contextlib.suppress(ValueError, RecursionError):
                    if isinstance(message := json.loads(line), str):
                        messages.append(sanitize(message))
        return messages

    def add(self, message: str) -> str:
        """Store a message; returns it without secrets. A folder that cannot be written costs only the history."""
        cleaned = self.redact.text(message)
        with contextlib.suppress(OSError):
            make_kept_folder(self.path.parent)
            if len(known := self.load()) >= MAX_HISTORY:
                self._write(os.O_TRUNC, known[-MAX_HISTORY // 2 :])
            self._write(os.O_APPEND, [cleaned])
        return cleaned

    def _write(self, how: int, messages: list[str]) -> None:
        content = "".join(json.dumps(message) + "\n" for message in messages)
        # A folder of unknown origin may have a link or a pipe here.
        how |= os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        with os.fdopen(os.open(self.path, how, 0o600), "w", encoding="utf-8") as file:
            if hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), 0o600)  # the file may be older than this rule
            file.write(content)


@dataclass(slots=True)
class LineReader:
    """Reads messages from standard input. ``is_reading`` is True while a thread waits for a line of a pipe."""

    store: ChatHistory | None = None
    is_reading: bool = False
    history: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        """Load the history. Bytes that are no text are replaced from the first line on."""
        if isinstance(sys.stdin, io.TextIOWrapper) and sys.stdin.errors != "replace":
            sys.stdin.reconfigure(errors="replace")
        if self.store is not None:
            self.history = self.store.load()

    async def read(self, prompt: str = "> ", *, keeps: bool = True, draft: str = "") -> str | None:
        """Return one message, or None at the end of the input. *keeps*: it is added to the history.

        *draft* is in the line at its beginning, for the person to edit; without a terminal, it is shown.

        A line that ends in a backslash goes on in the next one. Raises StoppedByPerson for Ctrl+C.
        """
        if _is_at_terminal():
            from fireswarm.cli.agent.terminal_prompt import read_at_terminal  # takes long to import

            message = await read_at_terminal(prompt, draft.strip("\n"), self.history, StoppedByPerson)
        else:
            message = await self._read_lines(prompt, draft.strip("\n"))
        if message is not None and (message := sanitize(message)).strip() and keeps:
            self.keep(message)
        return message

    async def _read_lines(self, prompt: str, draft: str) -> str | None:
        if draft.strip():
            sys.stderr.write(f"You had typed: {draft}\n")
        lines: list[str] = []
        while line := await self._read_line(prompt):
            lines.append(line.removesuffix("\n").removesuffix("\\"))
            if not line.endswith("\\\n"):
                break
        return "\n".join(lines) if lines else None

    async def _read_line(self, prompt: str) -> str:
        """Read in a thread that keeps no process alive: it cannot be stopped while no line comes. "" at the end."""
        over, token = anyio.Event(), current_token()
        lines: list[str] = []

        def work() -> None:
            with contextlib.suppress(OSError, ValueError, AttributeError):  # standard input was closed
                lines.append(sys.stdin.readline())
            self.is_reading = False
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                from_thread.run_sync(over.set, token=token)

        sys.stderr.write(prompt)
        sys.stderr.flush()
        self.is_reading = True
        threading.Thread(target=work, name="prompt", daemon=True).start()
        await over.wait()
        return lines[0] if lines else ""

    def take_typed(self, *, unfinished: bool = False) -> str:
        """Return the lines that were typed on the terminal while no message was read.

        *unfinished*: the last line is taken as well if it has no end yet.
        """
        typed, content = "", b""
        if _is_at_terminal() and "prompt_toolkit" in sys.modules:
            from fireswarm.cli.agent.terminal_prompt import take_typeahead

            typed = take_typeahead(unfinished=unfinished)
        with (
            contextlib.suppress(OSError, ValueError, AttributeError),
            restored_terminal(by_line=not unfinished),
        ):
            # The rest of a long paste follows when its beginning has been read.
            while sys.stdin.isatty() and select.select([sys.stdin], [], [], PASTE_SECONDS if content else 0)[0]:
                if not (piece := os.read(sys.stdin.fileno(), 65_536)):
                    break
                content += piece
        return sanitize(typed + content.decode("utf-8", "replace"))

    def keep(self, message: str) -> None:
        """Add a message to the history."""
        if self.store is not None:
            self.history.append(self.store.add(message))


def _is_at_terminal() -> bool:
    """Return True if a person types at a terminal and sees what is typed."""
    try:
        return sys.stdin.isatty() and (sys.stdout.isatty() or sys.stderr.isatty())
    except (AttributeError, ValueError):  # closed
        return False


@contextlib.contextmanager
def restored_terminal(*, keeps_typed: bool = False, by_line: bool = True) -> Generator[None]:
    """Restore the terminal's modes at the end: a prompt that a signal ends leaves them as it needs them.

    *keeps_typed*: what has been typed is kept when Ctrl+C is. Without *by_line*, the terminal also gives what was typed
    of a line that has no end yet.
    """
    try:
        import termios
    except ImportError:  # Windows
        yield
        return
    gone = (termios.error, OSError, ValueError, AttributeError, TypeError)  # a pipe, closed, or gone meanwhile
    before: list[Any] | None = None
    with contextlib.suppress(*gone):
        before, changed = termios.tcgetattr(sys.stdin), termios.tcgetattr(sys.stdin)
        changed[3] |= termios.NOFLSH if keeps_typed else 0
        changed[3] &= ~0 if by_line else ~termios.ICANON
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, changed)
    try:
        yield
    finally:
        if before is not None:
            with contextlib.suppress(*gone):
                termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
