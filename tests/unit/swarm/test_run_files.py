"""The run log: schema-valid lines without secrets, readable even after a crash."""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fireswarm.clocks import VirtualClock
from fireswarm.contracts.swarm.event import EventRecord, EventType
from fireswarm.errors import InvalidInput, NotFound
from fireswarm.redaction import Redactor
from fireswarm.runs.sinks.files import RUN_ID, RunLog, new_run_id, open_copy, read_events, run_folder

NAME = "20260101-000000-0a1b2c3d"


def log_in(folder: Path, **options: Any) -> RunLog:
    return RunLog(folder / NAME, NAME, VirtualClock(), Redactor(["my-secret-value"]), **options)


def test_event_is_written_at_once_as_a_valid_line(tmp_path: Path) -> None:
    seen: list[EventRecord] = []
    log = log_in(tmp_path, on_event=seen.append)
    for turn, kind in enumerate(EventType):
        log.event(kind, {"turn": turn, "text": "a\x1b[31m my-secret-value \ud800\n", "list": [1, None, {"x": 0.5}]})
        assert len((tmp_path / NAME / "events.jsonl").read_text().splitlines()) == turn + 1
    log.close()
    read = list(read_events(tmp_path / NAME))
    assert read == seen
    assert [event.event_type for event in read] == list(EventType)
    assert {event.payload["text"] for event in read} == {"a [redacted] \n"}
    assert {event.trace_id for event in read} == {read[0].trace_id}
    assert [event.span_id for event in read] == [f"turn-{turn}" for turn in range(len(read))]
    assert {event.redaction_mode for event in read} == {"redacted"}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes")
def test_only_the_user_can_read_the_logs(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        log = log_in(tmp_path, copy=open_copy(tmp_path, Path("runs"), NAME))
        log.event(EventType.RUN_STARTED, {"task": "private"})
        log.close()
    finally:
        os.umask(before)
    for folder in (tmp_path, tmp_path / "runs"):
        assert (folder / NAME / "events.jsonl").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("left", [1, 30, 200])
def test_log_cut_in_its_last_line_is_read_up_to_the_cut(left: int, tmp_path: Path) -> None:
    log = log_in(tmp_path)
    log.event(EventType.RUN_STARTED, {"task": "eins"})
    log.event(EventType.RUN_FINISHED, {"answer": "\N{GRINNING FACE}" * 100})
    log.close()
    path = tmp_path / NAME / "events.jsonl"
    first, second = path.read_bytes().splitlines()
    path.write_bytes(first + b"\n" + second[: len(second) - left])
    assert [event.event_type.value for event in read_events(tmp_path / NAME)] == ["run_started"]


def test_log_cut_within_a_character_is_read_up_to_the_cut(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    log.event(EventType.RUN_STARTED, {"task": "a"})
    log.close()
    with (tmp_path / NAME / "events.jsonl").open("ab") as file:
        file.write("{\N{GRINNING FACE}".encode()[:-2])
    assert len(list(read_events(tmp_path / NAME))) == 1


def test_broken_line_in_the_middle_is_reported_with_its_number(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    log.event(EventType.RUN_STARTED, {})
    log.close()
    path = tmp_path / NAME / "events.jsonl"
    path.write_text(path.read_text() + "{broken\n" + path.read_text())
    with pytest.raises(InvalidInput, match=r"events.jsonl:2 is not an event"):
        list(read_events(tmp_path / NAME))


def test_bodies_are_stored_next_to_the_log_without_secrets(tmp_path: Path) -> None:
    log = log_in(tmp_path, debug=True)
    log.body("llm:1.0/../x.json", "my-secret-value \x1b[0m and \ud800 text")
    log.event(EventType.RUN_STARTED, {})
    log.close()
    [body] = (tmp_path / NAME / "bodies").iterdir()
    assert body.name == "llm_1.0_.._x.json"
    assert body.read_text() == "[redacted]  and  text"
    assert next(read_events(tmp_path / NAME)).redaction_mode == "debug"


def test_streamed_words_are_redacted_and_shown_before_the_next_event(tmp_path: Path) -> None:
    shown: list[str] = []

    def told(event: EventRecord) -> None:
        shown.append(f"<{event.event_type}>")

    log = log_in(tmp_path, on_words=shown.append, on_event=told)
    for piece in ("I say my-sec", "ret-value and th", "en stop"):
        log.words(piece)
    log.event(EventType.LLM_RESPONSE_RECEIVED, {})
    log.close()
    assert "".join(shown) == "I say [redacted] and then stop<llm_response_received>"


def test_run_ids_sort_by_time_and_differ_within_a_second() -> None:
    now = datetime(2026, 11, 22, 8, 15, tzinfo=UTC)
    ids = {new_run_id(now) for _ in range(100)}
    assert len(ids) == 100
    assert all(RUN_ID.match(name) and name.startswith("20261122-081500-") for name in ids)


def test_run_folder_finds_a_run_by_id_or_the_latest(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there are no runs"):
        run_folder(tmp_path, "latest")
    for number, name in enumerate(("20260101-000000-ffffffff", "20260102-000000-ffffffff", "20260102-000000-00000000")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "events.jsonl").write_text(json.dumps({}))
        os.utime(tmp_path / name / "events.jsonl", (number, number))
    (tmp_path / "a-b-c").mkdir()
    (tmp_path / "z-z-z").mkdir()
    (tmp_path / "z-z-z" / "events.jsonl").touch()
    assert run_folder(tmp_path, "latest").name == "20260102-000000-00000000"
    assert run_folder(tmp_path, "20260101-000000-ffffffff").name == "20260101-000000-ffffffff"
    with pytest.raises(NotFound, match="there is no run 20260109"):
        run_folder(tmp_path, "20260109-000000-ffffffff")
    for odd in ("../../etc", "", "20260101"):
        with pytest.raises(InvalidInput, match="is not a run id"):
            run_folder(tmp_path, odd)
