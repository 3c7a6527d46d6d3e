"""Length limits shared by several packages, and the function that applies them.

Limits of a single module stay in that module.
"""

from __future__ import annotations

import re
from typing import Literal

MAX_OBJECTIVE_CHARS = 8_000
"""Maximum length of ``objective`` of a task or of a request to a skill."""

MAX_RESULT_SUMMARY_CHARS = 2_000
"""Maximum length of ``SkillResult.summary`` and of ``message`` of a response."""

MAX_STORED_SUMMARY_CHARS = 1_500
"""Maximum length of ``summary`` of a stored task or run, and of ``outcome`` of an envelope."""

MAX_ERROR_CHARS = 4_000
"""Maximum length of ``error`` of a stored task or run. The run's journal has the full text."""

MAX_LABEL_CHARS = 200
"""Maximum length of a one-line label: the summary of an artifact, the note of a signal, a command in a message."""

MAX_DETAIL_CHARS = 500
"""Maximum length of foreign text that an error message quotes: a provider's answer, a program's stderr."""

MAX_KEPT_OUTPUT_BYTES = 1_000_000
"""Maximum stored bytes of a tool's result, and of each output stream of a command, for a model that reads pages."""

SHORT_ID_CHARS = 8
"""Length of shortened generated ids for people; commands accept any unique prefix."""

MAX_SHOWN_ID_CHARS = 60
"""Maximum length at which an id that a person chose is shown; Firestore allows 1,500 bytes."""

SNIFF_BYTES = 8_192
"""Number of leading bytes in which a NUL byte marks a file as binary."""

Confinement = Literal["auto", "bubblewrap", "landlock", "container", "none"]
"""How foreign code is confined: ``auto`` takes bubblewrap if it works, otherwise Landlock."""


_GENERATED_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|[A-Za-z0-9]{20}")
"""A UUID, or an Auto-ID of Firestore's console and clients."""


def shown_id(item_id: str) -> str:
    """Return the beginning of an id that names it on the command line.

    Ids that people choose often begin alike, such as ``report-monday`` and ``report-tuesday``: they stay whole.
    """
    return item_id[: SHORT_ID_CHARS if _GENERATED_ID.fullmatch(item_id) else MAX_SHOWN_ID_CHARS]


def truncate(text: str, limit: int = MAX_RESULT_SUMMARY_CHARS) -> str:
    """Cut *text* to *limit* characters. A shortened text ends with an ellipsis."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def clip(text: str, length: int) -> str:
    """Return the first line of *text*, truncated at a word with an ellipsis if longer than *length*."""
    line = " ".join(text.split("\n", 1)[0].split())
    return line if len(line) <= length else line[: length - 1].rsplit(" ", 1)[0] + "…"
