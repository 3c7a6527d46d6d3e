"""Report an error in one line on standard error, with exit code 1. Imports only fast modules."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Generator

from fireswarm.cli.streams import OUTPUT, describe_output_error
from fireswarm.errors import FireswarmError
from fireswarm.processes.startup import why_exhausted
from fireswarm.redaction import environment_redactor


@contextlib.contextmanager
def report_errors(*more: type[Exception]) -> Generator[None]:
    """Convert a known error, or one in a group, to a message and an exit code; an OSError must name a file.

    What the system refuses for a lack of processes, threads, memory or descriptors is a known error as well.
    """
    try:
        yield
    except* (FireswarmError, OSError, RuntimeError, MemoryError, *more) as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if not (reason := _describe(error, more)):
            raise
        if reason != NOTHING:
            print_error(reason, getattr(error, "code", "error"))
        sys.exit(1)


NOTHING = "-"
"""Description of the end of a reader, of which nothing is to be said."""


def _describe(error: BaseException, known: tuple[type[Exception], ...]) -> str:
    """Return the message of an error, or "" for one that nobody expected."""
    if isinstance(error, OSError) and error.filename == OUTPUT:
        return describe_output_error(error) or NOTHING
    if reason := why_exhausted(error):
        return reason
    if isinstance(error, OSError) and (error.filename is None or OSError not in known):
        return ""
    return str(error) if isinstance(error, (FireswarmError, *known)) else ""


def print_error(text: str, code: str = "error") -> None:
    """Print one error on standard error, without secrets."""
    red, plain = ("\x1b[31m", "\x1b[0m") if sys.stderr.isatty() else ("", "")
    with contextlib.suppress(OSError):  # nobody can read it
        sys.stderr.write(f"{red}error ({code}): {environment_redactor().clean(text)}{plain}\n")
