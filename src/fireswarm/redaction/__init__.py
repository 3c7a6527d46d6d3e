"""Redaction of secrets, and removal of control characters, in everything that leaves the program. Pure."""

from fireswarm.redaction.placeholders import FileSecrets, count_placeholders, tag_secret
from fireswarm.redaction.redactor import (
    HIDDEN,
    REDACTED,
    Redactor,
    environment_redactor,
    sanitize,
    secret_name,
    secret_values,
    shows,
    spell,
)
from fireswarm.redaction.stream import StreamRedactor

__all__ = [
    "HIDDEN",
    "REDACTED",
    "FileSecrets",
    "Redactor",
    "StreamRedactor",
    "count_placeholders",
    "environment_redactor",
    "sanitize",
    "secret_name",
    "secret_values",
    "shows",
    "spell",
    "tag_secret",
]
