"""A run on a terminal: text by paragraph, also when an answer breaks off and is requested again."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from fireswarm.cli.watch.run_view import RunView
from fireswarm.contracts.swarm.event import EventRecord, EventType


class Terminal:
    """A view, and the lines that it has printed."""

    def __init__(self) -> None:
        self._file = io.StringIO()
        self.view = RunView(Console(file=self._file, width=80))

    def event(self, kind: EventType, **payload: Any) -> None:
        content: dict[str, Any] = {
            "run_id": "20260101-000000-00000001",
            "trace_id": "t",
            "span_id": "s",
            "timestamp": "2026-01-01T00:00:00+00:00",
            "event_type": kind.value,
            "payload": payload,
            "redaction_mode": "redacted",
        }
        self.view.event(EventRecord.model_validate(content))

    @property
    def lines(self) -> list[str]:
        return [line.strip() for line in self._file.getvalue().splitlines() if line.strip()]


@pytest.mark.parametrize("failed", [True, False])
def test_answer_that_broke_off_is_not_joined_with_the_next_one(failed: bool) -> None:
    terminal = Terminal()
    terminal.event(EventType.LLM_REQUEST_SENT, turn=1)
    terminal.view.words("First paragraph.\n\n```\nsecond para")
    if failed:
        terminal.event(EventType.LLM_REQUEST_FAILED, turn=1, error="interrupted")
        terminal.event(EventType.LLM_RETRY_SCHEDULED, turn=1, pause_seconds=1)
    terminal.event(EventType.LLM_REQUEST_SENT, turn=1)
    terminal.view.words("Another answer.\n\nIts end")
    terminal.event(EventType.LLM_RESPONSE_RECEIVED, turn=1)
    broken = ["second para", "• error interrupted", "• wait 1 s for the provider"] if failed else []
    assert terminal.lines == ["First paragraph.", *broken, "Another answer.", "Its end"]
    assert terminal.view.answer == "Another answer.\n\nIts end"
