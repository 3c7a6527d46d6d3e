"""Log entries of `swarm`: as text, or as lines of JSON with the names that Cloud Logging knows."""

from __future__ import annotations

import hashlib
import json
import logging
from datetime import datetime

import pytest
from typer.testing import CliRunner

from fireswarm.cli.swarm import main
from fireswarm.signals.current import CurrentTurn, turn_at_work

SECRET = "sk-ant-hunter2-hunter2-hunter2"


def chosen(monkeypatch: pytest.MonkeyPatch, *arguments: str, **environment: str) -> logging.Formatter:
    """Return the formatter of the log after a command with these options."""
    found: list[logging.Formatter] = []

    def keep(*, handlers: list[logging.Handler], **_: object) -> None:
        formatter = handlers[0].formatter
        assert formatter is not None
        found.append(formatter)

    monkeypatch.setattr(logging, "basicConfig", keep)
    done = CliRunner().invoke(main.app, [*arguments, "skills", "list", "--help"], env=environment)
    assert done.exit_code == 0, done.output
    return found[0]


def entry(message: str, failed: BaseException | None = None) -> logging.LogRecord:
    told = (type(failed), failed, failed.__traceback__) if failed else None
    return logging.LogRecord("fireswarm.worker", logging.ERROR, __file__, 1, message, ("x",), told)


@pytest.mark.parametrize("way", [("--log-format", "json"), ()])
def test_entry_is_one_line_of_json_without_secrets(way: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    formatter = chosen(monkeypatch, *way, **({} if way else {"FIRESWARM_LOG_FORMAT": "json"}))
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    try:
        raise ValueError(f"two\nlines with {SECRET}")
    except ValueError as error:
        line = formatter.format(entry(f'task %s said "{SECRET}"\nand more', error))
    assert "\n" not in line and SECRET not in line
    told = json.loads(line)
    assert (told["severity"], told["logger"]) == ("ERROR", "fireswarm.worker")
    assert told["message"].startswith("task x said") and told["message"].endswith("and more")
    assert told["stack_trace"].startswith("Traceback") and "ValueError: two" in told["stack_trace"]
    offset = datetime.fromisoformat(told["time"]).utcoffset()
    assert offset is not None and offset.total_seconds() == 0


@pytest.mark.parametrize("project", ["", "p-1"])
def test_entry_of_a_turn_has_the_ids_of_its_trace_and_span(project: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", project)
    formatter = chosen(monkeypatch, "--log-format", "json")
    assert not [name for name in json.loads(formatter.format(entry("outside of %s"))) if "/" in name]
    token = turn_at_work.set(CurrentTurn("objective-1", "task-1", "task-1.1"))
    try:
        told = json.loads(formatter.format(entry("task %s fails")))
    finally:
        turn_at_work.reset(token)
    trace = hashlib.sha256(b"trace/objective-1").hexdigest()[:32]
    assert told["logging.googleapis.com/trace"] == (f"projects/{project}/traces/{trace}" if project else trace)
    assert told["logging.googleapis.com/spanId"] == hashlib.sha256(b"span/task-1.1").hexdigest()[:16]


def test_text_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(monkeypatch).format(entry("task %s fails")).endswith("ERROR fireswarm.worker: task x fails")


def test_unknown_format_is_refused() -> None:
    done = CliRunner().invoke(main.app, ["--log-format", "yaml", "skills", "list"])
    assert done.exit_code == 2 and "yaml" in done.output
