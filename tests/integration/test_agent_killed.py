"""The command ``agent`` is killed by ``kill -9`` after each event and each step that it writes, and goes on."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

from fireswarm.contracts.swarm.event import EventType
from fireswarm.runs.sinks.files import read_events
from tests.support.commands import environment
from tests.support.crashes import EVERYWHERE

MODEL = """
ANSWERS = [
    {"text": "I begin.", "calls": [
        {"name": "run_command", "input": {"command": "echo a >> log"}},
        {"name": "write_file", "input": {"path": "x", "content": "1"}},
    ]},
    {"calls": [{"name": "read_file", "input": {"path": "x"}}, {"name": "list_files", "input": {}}]},
    {"calls": [{"name": "edit_file", "input": {"path": "x", "old_text": "1", "new_text": "2"}}]},
    {"calls": [{"name": "run_command", "input": {"command": "echo b >> log"}}]},
    "Done.",
]


def answer(request):
    with open("asked", "a") as asked:
        asked.write(f"{request.answers}\\n")
    return ANSWERS[request.answers]


answer.tools = True
"""
ANSWERS = 5
ONCE = (EventType.RUN_STARTED, EventType.LLM_DECISION_DECODED, EventType.SKILL_STEP_EXECUTED)


def test_run_killed_after_any_write_is_finished_by_resume_and_repeats_no_call(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "model.py").write_text(MODEL)
    command = [sys.executable, "-m", "tests.support.killed_agent", str(tmp_path)]
    done = subprocess.run(command, env=environment(tmp_path), capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    killed_at = [int(number) for number in done.stdout.splitlines()[-1].split()]
    assert killed_at[-1] > 30
    expected = counted(tmp_path / "0")
    interrupted = 0
    for number in killed_at:
        folder = tmp_path / str(number)
        log = Counter((folder / "log").read_text().split())
        assert max(log.values()) == 1, (number, log)
        assert counted(folder) == expected, number
        asked = Counter((folder / "asked").read_text().split())
        assert asked.keys() == {str(answer) for answer in range(ANSWERS)}
        assert sum(asked.values()) <= ANSWERS + 1, "only an answer that had not been written is asked for again"
        interrupted += (folder / "x").read_text() != "2" or log.keys() != {"a", "b"}
    assert interrupted <= 4, "an action that was killed before it ran is told as interrupted, and not repeated"
    assert interrupted or not EVERYWHERE


def counted(folder: Path) -> dict[EventType, int]:
    """How often each of the events occurs that a run has once for each answer and call, whatever happens to it."""
    [path] = (folder / "runs").glob("*/events.jsonl")
    events = list(read_events(path.parent))
    assert events[-1].event_type is EventType.RUN_FINISHED
    kinds = Counter(event.event_type for event in events)
    return {kind: kinds[kind] for kind in ONCE}
