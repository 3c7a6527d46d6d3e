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


def step(tool: str, given: dict[str, Any], text: str, status: str = "ok") -> dict[str, Any]:
    where = "stdout_summary" if status == "ok" else "stderr_summary"
    return {"type": "call_tool", "params": {"tool": tool, "input": str(given)}, "status": status, where: text}


@pytest.mark.parametrize(
    ("payload", "lines"),
    [
        (step("todo", {"items": []}, "[x] read\n[>] write\n[ ] test"), ["• todo", "[x] read", "[>] write", "[ ] test"]),
        (
            step("edit_file", {"path": "a"}, "old_text was not found.\nThe nearest passage is:\n     2\ttwo", "failed"),
            ["• edit_file a", "old_text was not found.", "The nearest passage is:", "2 two"],
        ),
        (
            step("command_output", {"id": "1.1"}, "ready\n[1.1 has been running for 3 s]"),
            ["• command_output 1.1", "1.1 has been running for 3 s"],
        ),
        (
            step("stop_command", {"id": "1.1"}, "[no new output]\n[1.1 was stopped]"),
            ["• stop_command 1.1", "1.1 was stopped"],
        ),
        (step("read_file", {"path": "a"}, "     1\tone\n     2\ttwo"), ["• read_file a", "1 one"]),
    ],
)
def test_call_is_shown_with_what_a_person_has_to_know(payload: dict[str, Any], lines: list[str]) -> None:
    terminal = Terminal()
    terminal.event(EventType.SKILL_STEP_EXECUTED, **payload)
    assert terminal.lines == lines


def test_long_list_is_cut() -> None:
    terminal = Terminal()
    items = "\n".join(f"[ ] item {number}" for number in range(60))
    terminal.event(EventType.SKILL_STEP_EXECUTED, **step("todo", {"items": []}, items))
    assert terminal.lines[-2:] == ["[ ] item 39", "… 20 further lines"]
