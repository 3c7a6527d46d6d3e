"""How long a test waits for what must come: it passes however slow the machine is."""

from __future__ import annotations

PATIENCE_SECONDS = 240.0
"""Below pytest's limit for a test, so that a failure says what did not come."""
