"""A command at a terminal: typed keys go in, and what is on the screen comes out."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from pathlib import Path

from tools.terminal_lines import plain

PASTE = ("\x1b[200~", "\x1b[201~")
"""What a terminal sends around a paste."""

UP, CTRL_C, CTRL_D, BACKSPACE = "\x1b[A", "\x03", "\x04", "\x7f"


class Terminal:
    """Runs a command in a pseudoterminal. ``with`` ends it afterwards."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        env: dict[str, str],
        *,
        columns: int = 80,
        lines: int = 40,
        kind: str = "xterm-256color",
    ) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        env = {name: value for name, value in env.items() if name != "COLUMNS"} | {"TERM": kind}
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env=env,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=_own,
        )
        os.close(slave)
        self.raw = b""
        self._seen = 0

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)

    @property
    def screen(self) -> str:
        """All lines that were printed, as each looks after its last change, without colors."""
        return plain(self.raw.decode("utf-8", "replace"))

    def expect(self, text: str, seconds: float = 30) -> str:
        """Wait until *text* is printed after what was expected last; returns what came up to it."""
        end = time.monotonic() + seconds
        while (at := self.screen.find(text, self._seen)) < 0:
            if not self._read(end):
                raise AssertionError(f"{text!r} was not printed: {self.screen[self._seen :]!r}")
        found = self.screen[self._seen : at]
        self._seen = at + len(text)
        return found

    def type(self, keys: str | bytes) -> None:
        """Send keys, as fast as the program takes them."""
        data = keys.encode() if isinstance(keys, str) else keys
        while data:
            readable, writable, _ = select.select([self.master], [self.master], [], 30)
            assert readable or writable, "the program takes no keys"
            if readable:
                self._read(time.monotonic() + 1)
            if writable:
                data = data[os.write(self.master, data[:512]) :]

    def ended(self, seconds: float = 30) -> int:
        """Wait for the end of the program and return its exit code."""
        end = time.monotonic() + seconds
        while self._read(end):
            pass
        return self.process.wait(max(0.1, end - time.monotonic()))

    def _read(self, end: float) -> bool:
        """Read what comes next; False at the end of the program or of the time."""
        if not select.select([self.master], [], [], max(0.0, end - time.monotonic()))[0]:
            return False
        try:
            piece = os.read(self.master, 65_536)
        except OSError:  # the program has closed the terminal
            return False
        self.raw += piece
        return bool(piece)


def _own() -> None:
    """Make the pseudoterminal the one that controls the program, so that Ctrl+C reaches it."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def agent_at_terminal(root: Path, *arguments: str, env: dict[str, str], columns: int = 80) -> Terminal:
    """Run `agent` in *root* at a terminal."""
    code = "from fireswarm.cli import agent_command; agent_command()"
    return Terminal([sys.executable, "-c", code, *arguments], root, env, columns=columns)
