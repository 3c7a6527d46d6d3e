"""Report an error in one line on standard error, with exit code 1. Imports only fast modules."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Generator

from fireswarm.errors import FireswarmError
from fireswarm.redaction import environment_redactor


@contextlib.contextmanager
def report_errors(*more: type[Exception]) -> Generator[None]:
    """Convert a known error, or one in a group, to a message and an exit code; an OSError must name a file."""
    try:
        yield
    except* (FireswarmError, *more) as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, OSError) and error.filename is None:
            raise
        red, plain = ("\x1b[31m", "\x1b[0m") if sys.stderr.isatty() else ("", "")
        sys.stderr.write(
            f"{red}error ({getattr(error, 'code', 'error')}): {environment_redactor().clean(str(error))}{plain}\n"
        )
        sys.exit(1)
