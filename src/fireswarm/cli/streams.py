"""The standard streams of a command: usable in any environment, and told apart from other files when one breaks."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import sys
from pathlib import Path
from typing import Any

FALL_BACK = "fireswarm-fall-back"
"""Name of the error handler of our streams: a character that the terminal cannot show is printed in another way."""

OUTPUT = "standard output"

PLAIN = {
    "…": "...", "•": "*", "·": "*", "–": "-", "—": "-", "−": "-", "‐": "-", "‑": "-", "‘": "'", "’": "'", "“": '"',
    "”": '"', "„": '"', "→": "->", "←": "<-", "×": "x", "✓": "ok", "✔": "ok", "✗": "x", "✘": "x", "│": "|", "─": "-",
    "━": "-", "┃": "|", "├": "+", "└": "+", "┌": "+", "┐": "+", "┘": "+", "\u00a0": " ", "\u202f": " ",
}  # fmt: skip
"""What is printed for a character without a place in the encoding; for others, a question mark."""


OUTPUT_OPTION = "fireswarm_output"
"""Option ``-X`` of the interpreter with the encoding of standard output that ``use_utf8`` found."""


def use_utf8() -> None:
    """Start this process again in Python's UTF-8 mode if the locale has another encoding, such as ASCII.

    Otherwise names of files that are not ASCII would be no valid text, which neither a store nor a hash takes. Output
    still has the encoding of the locale.
    """
    if sys.platform == "win32" or sys.getfilesystemencoding() == "utf-8" or sys.flags.utf8_mode:
        return
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    options = ["-X", f"{OUTPUT_OPTION}={encoding}"]
    os.environ["PYTHONUTF8"] = "1"  # for role processes and skills as well
    os.execv(sys.executable, [sys.executable, *options, *sys.orig_argv[1:]])


def prepare_streams() -> None:
    """Make the standard streams usable in any environment.

    The null device is opened for each stream that the caller closed; otherwise a file would get its number. Output is
    never refused for a character that the encoding lacks, and input never for bytes that are no text.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - open to the end
    codecs.register_error(FALL_BACK, _fall_back)
    options: dict[str, Any] = vars(sys)["_xoptions"]
    encoding = options.get(OUTPUT_OPTION)
    for stream, handler in ((sys.stdin, "replace"), (sys.stderr, FALL_BACK), (sys.stdout, FALL_BACK)):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=None if stream is sys.stdin else encoding, errors=handler)
    stream = sys.stdout
    if isinstance(stream, io.TextIOWrapper) and not isinstance(stream, Output):
        encoding, by_line = stream.encoding, stream.line_buffering
        # A wrapper that nobody holds closes its buffer; the interpreter holds its own one.
        buffer = stream.buffer if stream is sys.__stdout__ else stream.detach()
        sys.stdout = Output(buffer, encoding, FALL_BACK, line_buffering=by_line)


class Output(io.TextIOWrapper):
    """Standard output. An error of it names OUTPUT as its file, so that it can be told from errors of other files."""

    def write(self, text: str, /) -> int:
        """Write *text*. Raises OSError."""
        try:
            return super().write(text)
        except OSError as error:
            raise OSError(error.errno, error.strerror, OUTPUT) from error

    def flush(self) -> None:
        """Write what is buffered. Raises OSError."""
        try:
            super().flush()
        except OSError as error:
            raise OSError(error.errno, error.strerror, OUTPUT) from error


def _fall_back(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(PLAIN.get(char, "?") for char in error.object[error.start : error.end]), error.end


def is_unicode(stream: Any) -> bool:
    """Return True if the stream can show every character."""
    return (getattr(stream, "encoding", None) or "utf-8").lower().startswith("utf")


def end_output() -> str:
    """Write what is left for the standard streams. Returns the error of standard output, or ""."""
    reason = ""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError) as error:
            if stream is sys.stdout and isinstance(error, OSError):
                reason = describe_output_error(error)
            _discard(stream)
    return reason


def describe_output_error(error: OSError) -> str:
    """Return why standard output lost a part, or "" if its reader wants no more, as ``head`` does when it ends."""
    return "" if isinstance(error, BrokenPipeError) else f"{OUTPUT} cannot be written: {error.strerror}"


def _discard(stream: Any) -> None:
    """Send the rest of a broken stream to the null device: the interpreter writes it at its end, and would complain."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
