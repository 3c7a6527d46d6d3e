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
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
from anyio import from_thread
from anyio.lowlevel import current_token

from fireswarm.redaction import Redactor, sanitize
from fireswarm.settings.run_folders import make_runs_folder

CTRL_C = "^C"
"""The line that Ctrl+C leaves at a prompt, as shells show it."""

MAX_HISTORY = 500
"""Messages that the history keeps."""

PASTE_SECONDS = 0.05
"""Without bracketed paste, lines that follow within this time belong to the message before them."""


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
            make_runs_folder(self.path.parent.parent)
            self.path.parent.mkdir(exist_ok=True)
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
    """Reads messages from standard input. ``is_reading`` is True while a person is asked for one."""

    history: ChatHistory | None = None
    is_reading: bool = False
    _readline: Any = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Prepare line editing, with the history, if standard input is a terminal."""
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(errors="replace")
        if sys.stdin.isatty() and sys.stdout.isatty():
            with contextlib.suppress(ImportError):
                self._readline = _prepared_readline()
        if self._readline is not None and self.history is not None:
            for message in self.history.load():
                self._readline.add_history(message)

    def read(self, prompt: str = "> ", *, keeps: bool = True, draft: str = "") -> str | None:
        """Return one message, or None at the end of the input. *keeps*: it is added to the history.

        *draft* is in the line at its beginning, for the person to edit; without line editing, it is shown.

        A line that ends in a backslash goes on in the next one. Raises StoppedByPerson for Ctrl+C.
        """
        lines: list[str] = []
        self._begin_with(draft.strip("\n"))
        while (text := self._read_part("… " if lines else prompt)) is not None:
            goes_on = text.endswith("\\")
            lines.append(text.removesuffix("\\"))
            if not goes_on:
                break
        if not lines:
            return None
        message = sanitize("\n".join(lines))
        if keeps and message.strip():
            self.keep(message)
        return message

    async def read_in_thread(self, prompt: str = "> ", *, keeps: bool = True, draft: str = "") -> str | None:
        """Read in a thread that keeps no process alive: it cannot be stopped while the person types nothing."""
        over, token = anyio.Event(), current_token()
        outcome: list[str | None | Exception] = []

        def work() -> None:
            try:
                outcome.append(self.read(prompt, keeps=keeps, draft=draft))
            except Exception as error:  # raised again in the loop
                outcome.append(error)
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                from_thread.run_sync(over.set, token=token)

        threading.Thread(target=work, name="prompt", daemon=True).start()
        await over.wait()
        if isinstance(outcome[0], Exception):
            raise outcome[0]
        return outcome[0]

    def take_typed(self, *, unfinished: bool = False) -> str:
        """Return the lines that were typed on the terminal while no message was read.

        *unfinished*: the last line is taken as well if it has no end yet.
        """
        content = b""
        with (
            contextlib.suppress(OSError, ValueError, AttributeError),
            _give_unfinished() if unfinished else contextlib.nullcontext(),
        ):
            # The rest of a long paste follows when its beginning has been read.
            while sys.stdin.isatty() and _is_more_typed(PASTE_SECONDS if content else 0):
                if not (piece := os.read(sys.stdin.fileno(), 65_536)):
                    break
                content += piece
        return sanitize(content.decode("utf-8", "replace"))

    def keep(self, message: str) -> None:
        """Add a message to the history."""
        if self.history is not None:
            cleaned = self.history.add(message)
            if self._readline is not None:
                self._readline.add_history(cleaned)

    def _begin_with(self, draft: str) -> None:
        """Put a draft into the line that is read next."""
        readline = self._readline
        if not draft.strip():
            return
        if readline is None:
            sys.stderr.write(f"You had typed: {draft}\n")
            return

        def insert() -> None:
            readline.set_pre_input_hook(None)
            readline.insert_text(draft)
            readline.redisplay()

        readline.set_pre_input_hook(insert)

    def _read_part(self, prompt: str) -> str | None:
        self.is_reading = True
        try:
            if not sys.stdin.isatty():
                sys.stderr.write(prompt)
                sys.stderr.flush()
                line = sys.stdin.readline()
                return line.rstrip("\n") if line else None
            return self._edit(prompt) if self._readline is not None else _read_lines(prompt)
        except OSError:  # standard input was closed
            return None
        finally:
            self.is_reading = False

    def _edit(self, prompt: str) -> str | None:
        with _ctrl_c_as_key():
            try:
                text = input(prompt)
                if _is_libedit(self._readline):  # it has no bracketed paste, and reads no byte too many
                    while _is_more_typed():
                        text += "\n" + input("")
            except EOFError:
                return None
        if text == CTRL_C:
            raise StoppedByPerson
        return text


def _prepared_readline() -> Any:
    """Return the module ``readline`` with the keys of a chat. Raises ImportError where Python has none."""
    readline = import_module("readline")
    readline.set_auto_history(False)
    readline.set_completer(None)
    if not _is_libedit(readline):
        readline.parse_and_bind("tab: tab-insert")
        readline.parse_and_bind("set enable-bracketed-paste on")  # Python turns it off
        readline.parse_and_bind(f'"\\C-c": "\\C-e\\C-u{CTRL_C}\\C-m"')
    return readline


def _is_libedit(readline: Any) -> bool:
    return "libedit" in (readline.__doc__ or "")


def drop_typed() -> None:
    """Drop what was typed before a question: it does not answer it."""
    try:
        import termios
    except ImportError:  # Windows
        return
    with contextlib.suppress(termios.error, OSError, ValueError, AttributeError, TypeError):
        termios.tcflush(sys.stdin, termios.TCIFLUSH)


@contextlib.contextmanager
def restored_terminal(*, keeps_typed: bool = False) -> Generator[None]:
    """Restore the terminal's modes at the end: a prompt that a signal ends leaves them as it needs them.

    *keeps_typed*: what has been typed is kept when Ctrl+C is.
    """
    before = _terminal_modes()
    if keeps_typed and (changed := _terminal_modes()) is not None:
        import termios

        changed[3] |= termios.NOFLSH
        _set_terminal_modes(changed)
    try:
        yield
    finally:
        if before is not None:
            _set_terminal_modes(before)


@contextlib.contextmanager
def _give_unfinished() -> Generator[None]:
    """Let the terminal give what was typed of a line that has no end yet."""
    with restored_terminal():
        if (changed := _terminal_modes()) is not None:
            import termios

            changed[3] &= ~termios.ICANON
            _set_terminal_modes(changed)
        yield


@contextlib.contextmanager
def _ctrl_c_as_key() -> Generator[None]:
    """Let the terminal pass Ctrl+C as a key: as a signal, it would stop the run that waits for the message."""
    with restored_terminal():
        if (changed := _terminal_modes()) is not None:
            import termios

            changed[6][termios.VINTR] = b"\0"
            _set_terminal_modes(changed)
        yield


def _terminal_modes() -> list[Any] | None:
    """Return the modes of the terminal at standard input, or None without one."""
    try:
        import termios
    except ImportError:  # Windows
        return None
    try:
        return termios.tcgetattr(sys.stdin)
    except (termios.error, OSError, ValueError, AttributeError, TypeError):  # a pipe, or closed
        return None


def _set_terminal_modes(modes: list[Any]) -> None:
    """Set the modes of the terminal, unless it has gone."""
    import termios

    with contextlib.suppress(termios.error, OSError, ValueError):
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, modes)


def _read_lines(prompt: str) -> str | None:
    """Read a line without editing, and those that follow at once: a paste. None at the end of the input."""
    sys.stdout.write(prompt)
    sys.stdout.flush()
    content = b""
    while not content.endswith(b"\n") or _is_more_typed():
        if not (piece := os.read(sys.stdin.fileno(), 65_536)):
            break
        content += piece
    return content.decode("utf-8", "replace").removesuffix("\n") if content else None


def _is_more_typed(seconds: float = PASTE_SECONDS) -> bool:
    return bool(select.select([sys.stdin.fileno()], [], [], seconds)[0])
