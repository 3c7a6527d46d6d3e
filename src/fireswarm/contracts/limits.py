"""Length limits that several packages share, and the function that applies them.

A limit that only one module needs stays in that module.
"""

from __future__ import annotations

MAX_OBJECTIVE_CHARS = 8_000
"""Longest ``objective`` of a task or of a request to a skill."""

MAX_RESULT_SUMMARY_CHARS = 2_000
"""Longest ``SkillResult.summary`` and longest ``message`` of a response."""

MAX_STORED_SUMMARY_CHARS = 1_500
"""Longest ``summary`` of a stored task or run, and longest ``outcome`` of an envelope."""

MAX_ERROR_CHARS = 4_000
"""Longest ``error`` of a stored task or run. The run's journal holds the rest."""

MAX_LABEL_CHARS = 200
"""Longest one-line label: the summary of an artifact, the note of a signal, a command in a message."""

MAX_DETAIL_CHARS = 500
"""Longest text from elsewhere that an error message quotes: a provider's answer, a program's stderr."""

MAX_KEPT_OUTPUT_BYTES = 1_000_000
"""Bytes that are kept of a tool's result, and of each output stream of a command, for a model that reads by page."""

SHORT_ID_CHARS = 8
"""Length to which task ids are cut for people; the commands take any unique prefix."""

SNIFF_BYTES = 8_192
"""Number of leading bytes in which a NUL byte marks a file as binary."""


def truncate(text: str, limit: int = MAX_RESULT_SUMMARY_CHARS) -> str:
    """Cut *text* to *limit* characters. A text that was cut ends with an ellipsis."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
