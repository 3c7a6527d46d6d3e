"""Redaction of secrets, and removal of control characters, in everything that leaves the program. Pure."""

from fireswarm.redaction.redactor import (
    HIDDEN,
    REDACTED,
    Redactor,
    StreamRedactor,
    environment_redactor,
    sanitize,
    secret_name,
    secret_values,
    shows,
    spell,
)

__all__ = [
    "HIDDEN",
    "REDACTED",
    "Redactor",
    "StreamRedactor",
    "environment_redactor",
    "sanitize",
    "secret_name",
    "secret_values",
    "shows",
    "spell",
]
