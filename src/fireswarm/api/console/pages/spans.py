"""Spans of time that filters offer; days are those of UTC."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from fireswarm.storage.documents.queries import Span

LASTING: Mapping[str, timedelta] = {
    "1h": timedelta(hours=1),
    "24h": timedelta(days=1),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}

SPANS: Mapping[str, str] = {
    "today": "today (UTC)",
    "yesterday": "yesterday (UTC)",
    "1h": "in the last hour",
    "24h": "in the last 24 hours",
    "7d": "in the last 7 days",
    "30d": "in the last 30 days",
}
"""The words of addresses, and how a page says them."""


def span_of(word: str, now: datetime) -> Span:
    """Return the first time of a span and the first after it; None is no bound, "" has none."""
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    match word:
        case "today":
            return today, None
        case "yesterday":
            return today - timedelta(days=1), today
        case "":
            return None, None
        case _:
            return now - LASTING[word], None
