"""Redaction of secrets, and removal of control characters, in everything that leaves the program. Pure."""

from fireswarm.redaction.redactor import (
    REDACTED,
    Redactor,
    StreamRedactor,
    environment_redactor,
    sanitize,
    secret_name,
    secret_values,
    without_credentials,
)

__all__ = [
    "REDACTED",
    "Redactor",
    "StreamRedactor",
    "environment_redactor",
    "sanitize",
    "secret_name",
    "secret_values",
    "without_credentials",
]
