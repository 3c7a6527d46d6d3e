"""Show a run of the agent on a terminal: the model's text as Markdown, and one line for each action."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any, cast

from rich.console import Console
from rich.text import Text

from fireswarm.cli.watch.answer import markdown_of
from fireswarm.cli.watch.approval_view import draw_diff
from fireswarm.contracts.base import count_noun
from fireswarm.contracts.limits import clip
from fireswarm.contracts.llm.decision import StepStatus
from fireswarm.contracts.swarm.event import EventRecord, EventType
from fireswarm.mind import ConclusionStatus

FENCE = "```"
MAX_ARGUMENT_CHARS = 200
MAX_RESULT_CHARS = 300
_ARGUMENTS = ("command", "path", "pattern", "query", "name", "question", "objective", "skill", "url", "id")
"""Inputs that describe a call best, in order of preference."""

MAX_LINES = 40
MAX_PASSAGE_LINES = 6
MAX_DIFF_LINES = 16
MAX_INTERRUPTED_LINES = 10
EDITS = ("edit_file", "write_file")
_STATES = ("command_output", "stop_command")
"""Tools whose output ends with the state of a command, in brackets."""


class RunView:
    """Prints text by paragraph as it arrives, and calls with the first line of their results."""

    def __init__(self, console: Console) -> None:
        """Print to *console*."""
        self._console = console
        self._pending = ""
        self._answer = ""
        self.approved = ""
        """The diff of the action that a person was just asked to approve."""

    @property
    def answer(self) -> str:
        """The text of the last decision: at the end of a run, its answer."""
        return self._answer.strip()

    def words(self, text: str) -> None:
        """Add a piece of the model's text, and print the complete paragraphs."""
        self._answer += text
        self._pending += text
        while (end := _end_of_paragraph(self._pending)) >= 0:
            self._print_text(self._pending[:end])
            self._pending = self._pending[end:].lstrip("\n")

    def event(self, record: EventRecord) -> None:
        """Print an event for a person."""
        kind, payload = record.event_type, record.payload
        match kind:
            case EventType.LLM_RESPONSE_RECEIVED:
                self._end_text()
            case EventType.LLM_REQUEST_SENT:
                self._answer = self._pending = ""
            case EventType.SKILL_STEP_EXECUTED:
                self._print_step(payload)
            case EventType.SKILL_INVOCATION_STARTED:
                self._print_line("use skill", str(payload.get("skill")), str(payload.get("reason") or ""))
            case EventType.LLM_RETRY_SCHEDULED if "model" in payload:
                self._print_line("model", f"{payload['model']} is asked now", "", "yellow")
            case EventType.LLM_RETRY_SCHEDULED:
                self._print_line("wait", f"{payload.get('pause_seconds')} s for the provider", "", "yellow")
            case EventType.LLM_REQUEST_FAILED:
                self._end_text()  # an interrupted answer; the next attempt starts a new one
                self._print_line("error", str(payload.get("error")), "", "yellow")
            case EventType.SIGNAL_RECEIVED:
                self._end_text()
                self._console.print()  # the terminal has echoed ^C
                self._print_line("stop", str(payload.get("signal")), "", "yellow")
            case EventType.RUN_FINISHED if payload.get("mode") != ConclusionStatus.DRY_RUN:
                usd = payload.get("usd")
                price = f", {usd:.4f} USD" if isinstance(usd, (int, float)) else ""
                spent = f"{payload.get('turns')} turns, {payload.get('tokens'):,} tokens{price}"
                self._console.print(Text(spent, "dim"))
            case _:
                return

    def _end_text(self) -> None:
        """Print the last paragraph, which may be incomplete."""
        self._print_text(self._pending)
        self._pending = ""

    def _print_text(self, text: str) -> None:
        if text.strip():
            self._console.print(markdown_of(text))
            self._console.print()

    def _print_step(self, payload: Mapping[str, Any]) -> None:
        name, *rest = call_of(payload)
        self._print_line(name, *rest)
        told = str(payload.get("stdout_summary") or "")
        if name in EDITS and payload.get("status") == StepStatus.OK and "\n@@ " in told:
            diff = told[told.index("\n@@ ") + 1 :]
            if not self.approved.endswith(diff):  # it was on the screen for approval
                draw_diff(diff, self._console, "  ", MAX_DIFF_LINES)
        self.approved = ""

    def _print_line(self, name: str, argument: str, result: str, style: str = "") -> None:
        print_call(self._console, name, argument, result, style)


def call_of(payload: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Return the content of a ``skill_step_executed`` event: the tool, its main input, its result, and a style.

    The result is one line, except for a to-do list and the passage nearest to an edit.
    """
    params: Mapping[str, Any] = payload.get("params") or {}
    name = str(params.get("tool") or payload.get("type"))
    given = _input_of(params)
    argument = next((str(given[key]) for key in _ARGUMENTS if given.get(key)), "")
    if name == "delegate":
        argument = f"{given.get('role')}: {argument}"
    status = str(payload.get("status"))
    failed = status != "ok"
    told = str((payload.get("stdout_summary") or "") if not failed else "")
    told = told or str(payload.get("stderr_summary") or payload.get("stdout_summary") or "")
    result = _result_of(name, told, failed=failed)
    code = payload.get("exit_code")
    if name == "run_command" and code:
        result = f"failed, exit code {code}: {result}" if result else f"failed, exit code {code}"
    if status == StepStatus.INTERRUPTED:
        printed = "\n".join(str(payload.get(each) or "") for each in ("stdout_summary", "stderr_summary"))
        last = [line for line in printed.splitlines() if line.strip()][-MAX_INTERRUPTED_LINES:]
        return name, argument, "\n".join([f"interrupted{', its last lines:' if last else ''}", *last]), "yellow"
    return name, argument, result, "red" if failed else ""


def _result_of(name: str, told: str, *, failed: bool) -> str:
    """Return the important part of an output for a person."""
    if name == "todo" and not failed:
        return told
    lines = [line.strip() for line in told.splitlines() if any(map(str.isalnum, line))]
    if name == "edit_file" and failed:
        return "\n".join(lines[:MAX_PASSAGE_LINES])
    if name in _STATES and not failed and lines:
        return lines[-1].strip("[]")
    return lines[-1 if name == "run_command" else 0] if lines else ""  # the end of an output says most


def print_call(console: Console, name: str, argument: str, result: str, style: str = "") -> None:
    """Print a call and the lines of its result, each cut at the width of the terminal."""
    line = Text("• ", style or "cyan")
    line.append(name, style or "bold")
    line.append(f" {clip(' '.join(argument.split()), MAX_ARGUMENT_CHARS)}", style)
    console.print(line, no_wrap=True, overflow="ellipsis", crop=True)
    lines = [" ".join(line.split()) for line in result.splitlines() if line.strip()]
    for text in lines[:MAX_LINES]:
        shown = Text(f"  {clip(text, MAX_RESULT_CHARS)}", style or "dim")
        console.print(shown, no_wrap=True, overflow="ellipsis", crop=True)
    if len(lines) > MAX_LINES:
        console.print(Text(f"  … {count_noun(len(lines) - MAX_LINES, 'further line')}", "dim"))


def _end_of_paragraph(text: str) -> int:
    """Return the position after the first complete paragraph of *text*, or -1; a code block is one paragraph."""
    position = 0
    while (end := text.find("\n\n", position)) >= 0:
        if text[:end].count(FENCE) % 2 == 0:
            return end
        position = end + 2
    return -1


def _input_of(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the input of a call; events store a tool's input as a string."""
    given = params.get("input")
    if isinstance(given, str):
        try:
            given = ast.literal_eval(given)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return params
    return cast("Mapping[str, Any]", given) if isinstance(given, dict) and given else params
