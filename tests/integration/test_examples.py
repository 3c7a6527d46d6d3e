"""Every example of docs/reference/commands.md runs, in one folder; long-running ones are started and stopped."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import anyio
import pytest
from tools.commands import EXAMPLES, LONG
from tools.events import EVENTS

from fireswarm.cli import agent_command, swarm_command
from fireswarm.client import Swarm
from fireswarm.contracts.skills.artifact import Artifact
from fireswarm.contracts.skills.skill import Fact, Question
from fireswarm.contracts.swarm.event import EventType
from fireswarm.contracts.swarm.outcome import Done, Failed, Outcome, Waiting
from fireswarm.contracts.swarm.task import StatusReason, TaskResult, TaskSpec, TaskStatus
from fireswarm.mind.approvals import place_of, questions_for
from fireswarm.mind.gate import command_call
from fireswarm.runs.sinks.files import read_events
from fireswarm.runs.steps import STEP_FINISHED, step_id
from fireswarm.settings import load_settings
from fireswarm.settings.run_folders import kept_runs
from fireswarm.swarm.opening.open_parts import open_parts
from fireswarm.swarm.turn.turn import open_journal
from tests.support.fleet import environment

ROOT = Path(__file__).parents[2]
MAIN: dict[str, Callable[[], None]] = {"swarm": swarm_command, "agent": agent_command}
START = "import sys; from fireswarm.cli import {0}_command; sys.argv[0] = '{0}'; {0}_command()"

ANSWERS = ["hello"]

SCHEMA = {"name": "x", "source_type": "TYPE2", "operations": [{"key": "a.b"}]}
SEEN = {"evidence": [{"file": "x.md", "line_start": 1, "line_end": 1}]}
PROVEN = {"key": "book.add", "state": "proven", "why": "", "passed": 5, "inputs": 5, "written_by": "template"}
REPORT = {"node": "Shelf", "proven": 1, "present": 1, "operations": [PROVEN]}
TRACE = {"fields": {"name": SEEN, "operations.a.b": SEEN}}

EXPECTED = {
    "swarm demo": "report: ",
    "swarm init": "my-swarm/roles",
    "swarm submit": "submitted ",
    "swarm tasks": "count the words",
    "swarm show": "waits for an agent of the role scout",
    "swarm cancel": "canceled ",
    "swarm retry": "queued again ",
    "swarm schedule set": "report: At 06:00 on Monday through Friday (Europe/Berlin), next: ",
    "swarm schedule list": "0 6 * * 1-5 Europe/Berlin",
    "swarm schedule pause": "paused report",
    "swarm schedule resume": "resumed report",
    "swarm schedule run": "submitted ",
    "swarm schedule remove": "removed report",
    "swarm budget": "the budget of ",
    "swarm answer": "answered ",
    "swarm approve": "approved ",
    "swarm deny": "denied ",
    "swarm say": "told ",
    "swarm fork": "before answer 1",
    "swarm plan": "assigned_to: scout",
    "swarm runs": "scout",
    "swarm pause": "the role executor is paused by an operator: the disk is full",
    "swarm resume": "resumed",
    "swarm drain": "the role executor is drained by an operator",
    "swarm agents": "[]",
    "swarm mail": "look at the numbers",
    "swarm memory": "no memory documents yet",
    "swarm memory recall": "PostgreSQL 15",
    "swarm memory history": "PostgreSQL 15",
    "swarm memory wrong": "marked as wrong: ",
    "swarm memory correct": "PostgreSQL 17",
    "swarm memory forget": "deleted ",
    "swarm cost": "no model calls in 6 runs",
    "swarm artifacts": "report.md",
    "swarm open": "report.md",
    "swarm capabilities": "web_fetch",
    "swarm pipeline new": "wrote pipelines/words.yaml",
    "swarm pipeline list": "pipelines/words.yaml",
    "swarm pipeline check": "1 pipeline, 0 faults",
    "swarm pipeline show": "words-report",
    "swarm pipeline run": "submitted ",
    "swarm pipeline resume": "submitted ",
    "swarm pipeline trace": "2 fields, 0 assumed, 0 faults",
    "swarm pipeline report": "1 of 1 operations proven by replay",
    "swarm doctor": "skills",
    "swarm store stats": "documents",
    "swarm store backup": "store.backup",
    "swarm store restore": "restored ",
    "swarm store export": "documents.jsonl",
    "swarm store import": "documents",
    "swarm store reset": "",
    "swarm state migrate": "nothing to do",
    "swarm state prune": "removed 0 conversations",
    "swarm skills list": "workspace-inventory",
    "swarm skills inspect": "workspace-inventory",
    "swarm skills check": "",
    "swarm skills bench": "recall",
    "agent run": "no model was called and no tool was run",
    "agent resume": "run ",
    "agent replay": "run_finished",
    "agent runs": "dry_run",
    "agent config init": "wrote agent.yaml",
    "agent config validate": "valid",
    "agent trust": "trusted agent.yaml with its current content",
    "agent capabilities": "execute_code",
    "agent skills list": "workspace-inventory",
    "agent skills inspect": "name: workspace-inventory",
    "agent skills check": "",
    "agent skills bench": "recall",
}
INTERRUPTED = 130
PATIENCE_SECONDS = 90.0

LASTING = {
    "swarm up": (" role processes", (0, INTERRUPTED)),
    "swarm role": ("works as role scout", (0, INTERRUPTED)),
    "swarm watch": ("turn_failed", (INTERRUPTED,)),
    "swarm pipeline demo": ("five roles as processes", (1, INTERRUPTED)),
    "swarm api": ("token, shown only once", (0, INTERRUPTED)),
    "swarm console": ("console, a link for one browser", (0, INTERRUPTED)),
    "swarm mcp": ("MCP on http://127.0.0.1:", (0, INTERRUPTED)),
    "swarm a2a": ("A2A agents on http://127.0.0.1:", (0, INTERRUPTED)),
    "swarm store serve": ("FIRESTORE_EMULATOR_HOST=", (0, INTERRUPTED)),
    "agent chat": ("session notes: a new conversation", (INTERRUPTED,)),
}
"""The first expected output and the exit codes; 130 if the signal arrives before its handler is installed."""

DEMO = "swarm demo"
"""Starts five processes and is slow: it runs in parallel to the others, in a separate folder."""


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


def variables(folder: Path) -> dict[str, str]:
    return environment() | {"COLUMNS": "200", "HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}


def run(folder: Path, line: str) -> Ended:
    """Run a command line in this process: the same entry point, without its start-up time."""
    program, *arguments = shlex.split(line)
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        contextlib.chdir(folder),
        mock.patch.dict(os.environ, variables(folder), clear=True),
        mock.patch.object(sys, "argv", [program, *arguments]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            MAIN[program]()
        except SystemExit as end:
            code = int(end.code or 0)
    return Ended(code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def started(folder: Path, line: str) -> Generator[subprocess.Popen[str]]:
    """Start a command line as a process, which is killed at the end of the block or after PATIENCE_SECONDS."""
    program, *arguments = shlex.split(line)
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", START.format(program), *arguments],
        cwd=folder,
        env=variables(folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    watchdog = threading.Timer(PATIENCE_SECONDS, process.kill)
    watchdog.daemon = True
    watchdog.start()
    try:
        yield process
    finally:
        watchdog.cancel()
        process.kill()
        process.communicate()


def filled(line: str, names: dict[str, str]) -> str:
    return re.sub(r"\$([A-Z]+)", lambda found: names[found[1]], line)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Create the files that the examples need."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "garden.md").write_text("# Garden\n\n- [ ] water the basil\n- [x] buy soil\n")
    prompts = [{"skill": "workspace-inventory", "query": "what is in this folder"}]
    (tmp_path / "prompts.json").write_text(json.dumps(prompts))
    (tmp_path / "run").mkdir()
    for name, content in {"inferred_schema.json": SCHEMA, "trace_map.json": TRACE, "port_report.json": REPORT}.items():
        (tmp_path / "run" / name).write_text(json.dumps(content))
    (tmp_path / "answers.json").write_text(json.dumps(ANSWERS))
    return tmp_path


async def settled(folder: Path, objective: str, outcome: Outcome) -> str:
    """Submit a task, claim it and settle it with *outcome*; return its id."""
    settings = load_settings(folder, environment={})
    async with open_parts(settings) as core:
        spec = TaskSpec(objective=objective, assigned_to="scout", session_hash="default", skill="noop")
        task = (await core.board.submit(spec)).task
        [held] = await core.board.claimer("scout", "scout-1").claim(1)
        journal = await open_journal(held, core)
        journal.note("turn_failed", error="as the test says")
        journal.note(STEP_FINISHED, step=step_id("0/llm:1.0", None), result={})
        await journal.flush()
        await core.board.settle(held, outcome)
    return task.task_id


async def learned(folder: Path) -> str:
    """Store a fact; return the beginning of its id."""
    async with open_parts(load_settings(folder, environment={})) as core:
        fact = Fact(bucket="setup", key="database", value="PostgreSQL 15", source="README.md")
        [write, _] = await core.memory.learn("default", "task-1", [fact])
        await core.store.commit([write])
    return write.path.partition("/fact-")[2][:8]


def blocked(folder: Path) -> dict[str, str]:
    """Create one failed, one asking and one done task; return their ids under the names that the examples use."""
    question = Question(name="path", description="Which folder?")
    report = Artifact(type="report", name="report.md", value="# A report")
    waiting = Waiting(StatusReason.INPUT_REQUIRED, "which folder?", (question,))
    push = command_call("git push", folder)
    asked = questions_for(push, place_of(push, "0/1.1"), "the permissions ask for Bash(git push:*)", str)
    approving = Waiting(StatusReason.APPROVAL_REQUIRED, asked[0].description, asked)
    tasks = [{"key": "a", "assigned_to": "scout", "objective": "look"}]
    other = Question(name="plan", description="other tasks", type="array", required=False, step=asked[0].step)
    other = other.model_copy(update={"allowed": {"default": tasks}})
    planned = Waiting(StatusReason.APPROVAL_REQUIRED, asked[0].description, (*asked, other))
    return {
        "BLOCKED": anyio.run(settled, folder, "fails", Failed("no")),
        "ASKING": anyio.run(settled, folder, "asks", waiting),
        "APPROVING": anyio.run(settled, folder, "wants to push", approving),
        "DENYING": anyio.run(settled, folder, "wants to deploy", approving),
        "PLANNED": anyio.run(settled, folder, "has a plan", planned),
        "FACT": anyio.run(learned, folder),
        "DONE": anyio.run(settled, folder, "makes", Done(TaskResult(artifacts=(report,)))),
    }


async def worked(folder: Path, task_id: str) -> TaskStatus:
    """Let the roles work in this process until a task ends; return its status."""
    with mock.patch.dict(os.environ, variables(folder), clear=True):
        async with Swarm.local(root=folder, store="embedded") as swarm:
            return (await swarm.wait(task_id)).status


def test_every_short_example_succeeds(folder: Path) -> None:
    (folder / "demo" / "notes").mkdir(parents=True)
    (folder / "demo" / "notes" / "garden.md").write_text("# Garden\n")
    with started(folder / "demo", EXAMPLES[DEMO]) as demo:
        run_the_others(folder)
        shown, _ = demo.communicate()
        assert demo.returncode == 0, shown
        assert EXPECTED[DEMO] in shown
    assert set(EXPECTED) | set(LASTING) == set(EXAMPLES)


def run_the_others(folder: Path) -> None:
    names = blocked(folder)
    for name, line in EXAMPLES.items():
        if LONG in line or name == DEMO:
            continue
        ended = run(folder, filled(line, names))
        assert ended.code == 0, f"{line}: {ended.err or ended.out}"
        assert EXPECTED[name] in ended.out + ended.err, f"{line}: {ended.out}"
        if name == "swarm submit":
            names["TASK"] = ended.out.split()[-1]
        if name == "swarm pipeline run":
            names["RUN"] = ended.out.split()[1]
            assert anyio.run(worked, folder, names["RUN"]) is TaskStatus.DONE


@pytest.mark.parametrize("name", list(LASTING))
def test_long_running_example_reports_its_start_and_stops_on_sigint(folder: Path, name: str) -> None:
    names = blocked(folder) if "$" in EXAMPLES[name] else {}
    if names:
        assert run(folder, f"swarm retry {names['BLOCKED']}").code == 0
        names["TASK"] = names["BLOCKED"]
    line = (
        filled(EXAMPLES[name].removesuffix(LONG), names)
        .replace("--port 8080", "--port 0")
        .replace("--port 8090", "--port 0")
    )
    words, codes = LASTING[name]
    with started(folder, line) as process:
        assert process.stdout is not None
        heard = next((said for said in process.stdout if words in said), None)
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate()
        assert heard is not None, f"{line}: {rest}"
        assert process.returncode in codes, rest


# ── the agent's first run and its events ──────────────────────────────────────────────────────────────


def shown_run() -> tuple[str, list[str]]:
    """Return the script of docs/tutorials/first-agent.md and the event types of the run that the page shows."""
    page = (ROOT / "docs" / "tutorials" / "first-agent.md").read_text(encoding="utf-8")
    [script] = re.findall(r"^`answers\.json`:\n\n```json\n(.*?)^```$", page, re.M | re.S)
    shown = page.split("$ agent run ", 1)[1].split("```", 1)[0]
    return script, re.findall(r"^\d\d:\d\d:\d\d [0-9a-f]{8} .{2} \S+ +(\w+)", shown, re.M)


def events(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    [log] = (folder / "runs").glob("*/events.jsonl")
    return [(event.event_type.value, dict(event.payload)) for event in read_events(log.parent)]


def test_first_agent_run_matches_the_tutorial(folder: Path) -> None:
    script, kinds = shown_run()
    (folder / "answers.json").write_text(script)
    ended = run(folder, "agent run 'what is still to be done in notes?' --script answers.json")
    assert ended.code == 0, ended.err
    assert "One thing is open: water the basil." in ended.out
    told = re.findall(r"^\d\d:\d\d:\d\d [0-9a-f]{8} .{2} \S+ +(\w+)", ended.err, re.M)
    assert told == kinds
    [checklist] = kept_runs(folder).glob("*/artifacts/*/checklist.md")
    assert "- [ ] water the basil (garden.md:3)" in checklist.read_text()


FAILING = {"calls": [{"name": "run_command", "input": {"command": "false"}}]}


@pytest.mark.parametrize(
    ("answers", "last"),
    [
        (["It is empty."], EventType.RUN_FINISHED),
        ([{"calls": [{"name": "list_files"}]}, "It is empty."], EventType.RUN_FINISHED),
        ([FAILING, "it failed"], EventType.RUN_FINISHED),
        ([{"error": 529, "message": "busy"}], EventType.RUN_FAILED),
        (['{"text": 1}', "{}}"], EventType.RUN_FAILED),
        (['{"text": "at once", "calls": []}'], EventType.RUN_FINISHED),
    ],
)
def test_event_payloads_contain_only_documented_keys(folder: Path, answers: list[Any], last: EventType) -> None:
    (folder / "answers.json").write_text(json.dumps(answers))
    settings = "runtime: {retry_base_delay_seconds: 0, on_step_failure: retry_once_then_report}\n"
    (folder / "agent.yaml").write_text(settings)
    run(folder, "agent run 'what is in this folder?' --script answers.json")
    found = events(folder)
    assert found[-1][0] == last
    for kind, payload in found:
        assert set(payload) <= set(EVENTS[EventType(kind)].payload), kind
