"""Run tasks one by one or side by side: each in a folder and a process of its own, and judged by what it left."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread
import psutil

from benchmarks.agent_tasks.checks import Leavings, digests_of, failures_of
from benchmarks.agent_tasks.child import Ended, Order
from benchmarks.agent_tasks.chosen_model import Chosen
from benchmarks.agent_tasks.task import HERE, BenchTask
from fireswarm.contracts.skills.artifact import OUTPUT_FOLDER
from fireswarm.contracts.swarm.event import EventType
from fireswarm.errors import ConfigError, InvalidInput
from fireswarm.runs.make_mind import redactor_for
from fireswarm.runs.sinks.files import EVENTS_FILE, read_events
from fireswarm.settings import AgentSettings
from fireswarm.settings.run_folders import STATE_HOME

ROOT = HERE.parents[1]
STOP_SECONDS = 5.0
"""Time that a run has to stop in order after its time limit."""


@dataclass(slots=True)
class Usage:
    """What the answers of a run have used; ``usd`` is None if one of them has no price."""

    turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    usd: float | None = 0.0


@dataclass(slots=True)
class Result:
    """The result of one run of one task; ``reasons`` is empty if it passed."""

    task: str
    run: int = 1
    way: str = "agent"
    reasons: list[str] = field(default_factory=list)
    seconds: float = 0.0
    worked_seconds: float = 0.0
    """Without the start of the process, and what came before a follow-up."""

    usage: Usage = field(default_factory=Usage)
    tools: dict[str, int] = field(default_factory=dict)
    """How often each tool was called."""

    answer: str = ""

    @property
    def passed(self) -> bool:
        return not self.reasons


@dataclass(frozen=True, slots=True)
class Place:
    """The folders of one run."""

    folder: Path

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def home(self) -> Path:
        """Folder of the run's files; the agent's commands see of it only the output folder."""
        return self.folder / "agent"

    @property
    def state(self) -> Path:
        """Folder of the state of programs: what the agent keeps of the run is below it."""
        return self.folder / "state"

    @property
    def ended(self) -> Path:
        return self.home / "ended.json"

    @property
    def outputs(self) -> list[Path]:
        return sorted(self.state.glob(f"*/*/*/{OUTPUT_FOLDER}"))


@dataclass(frozen=True, slots=True)
class Way:
    """How a task is done: the module of the process that does it, and what adds up the usage that it recorded.

    ``measure`` ignores what was before the given moment.
    """

    name: str
    child: str
    measure: Callable[[Place, Result, datetime | None], None]


def lay_out(task: BenchTask, folder: Path) -> Place:
    """Copy a task's project into a new folder, and make the rest of it. Raises ConfigError."""
    place = Place(folder)
    place.home.mkdir(parents=True)
    shutil.copytree(task.project, place.project, ignore=shutil.ignore_patterns("__pycache__"))
    if task.file.prepare is not None:
        prepare = task.materials.get(task.file.prepare)
        if prepare is None:
            raise ConfigError(f"task {task.name}: prepare {task.file.prepare!r} is none of {', '.join(task.materials)}")
        prepare(place.project)
    return place


async def run_all(
    tasks: Sequence[BenchTask],
    chosen: Chosen,
    folder: Path,
    *,
    runs: int = 1,
    jobs: int = 1,
    on_result: Callable[[Result], None],
) -> None:
    """Run each task *runs* times, at most *jobs* side by side. Results are told as they come."""
    free = anyio.CapacityLimiter(jobs)

    async def one(task: BenchTask, number: int) -> None:
        async with free:
            on_result(await run_task(task, number, chosen, folder / f"{task.name}-{number}"))

    async with anyio.create_task_group() as group:
        for number in range(1, runs + 1):
            for task in tasks:
                group.start_soon(one, task, number)


async def run_task(task: BenchTask, number: int, chosen: Chosen, folder: Path, way: Way | None = None) -> Result:
    """Run a task once and judge it. Whatever goes wrong is a reason of its failure."""
    way = way or AGENT
    result, settings = Result(task.name, number, way.name), chosen.settings_for(task)
    started = time.perf_counter()
    try:
        place = await anyio.to_thread.run_sync(lay_out, task, folder)
        before = await anyio.to_thread.run_sync(digests_of, place.project)
        ended, reason = await _run_child(task, settings, place, way.child, chosen.environment)
        result.seconds = round(time.perf_counter() - started, 1)
        if ended is not None:
            result.answer, result.worked_seconds = ended.answer, ended.seconds
        since = datetime.fromisoformat(ended.since) if ended is not None and task.file.then else None
        await anyio.to_thread.run_sync(way.measure, place, result, since)
        if reason:
            result.reasons.append(reason)
        left = Leavings(place.project, before, place.outputs, result.answer)
        result.reasons += await failures_of(task, left, settings.runtime, program_path())
    except Exception as error:  # a task that breaks leaves the others
        result.seconds = result.seconds or round(time.perf_counter() - started, 1)
        result.reasons.append(f"the run broke: {type(error).__name__}: {error}")
    clean = redactor_for(settings).clean  # they quote outputs and names of files
    result.reasons = [clean(reason) for reason in result.reasons]
    return result


def program_path() -> str:
    """Return the PATH of the agent's commands, and of those that check: ``python3`` is this interpreter."""
    return os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))


async def _run_child(
    task: BenchTask, settings: AgentSettings, place: Place, module: str, environment: Mapping[str, str]
) -> tuple[Ended | None, str]:
    """Do a task in a process of its own; returns its end, and why the run failed or ""."""
    replies = [(reply.question, reply.answer) for reply in task.file.replies]
    order = Order(
        task.file.objective.strip(),
        str(place.project),
        str(place.home),
        str(place.ended),
        settings.model_dump(mode="json"),
        replies,
        task.file.then.strip(),
    )
    told = place.home / "stderr.txt"
    with told.open("wb") as stderr:
        process = await anyio.open_process(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=stderr,
            stderr=stderr,
            cwd=ROOT,
            env={**os.environ, **environment, "PATH": program_path(), STATE_HOME: str(place.state)},
            start_new_session=True,  # Ctrl+C stops this process, and this one stops its children
        )
    try:
        assert process.stdin is not None
        with contextlib.suppress(anyio.BrokenResourceError):
            await process.stdin.send(json.dumps(asdict(order)).encode() + b"\n")
        with anyio.move_on_after(task.file.limits.seconds) as scope:
            await process.wait()
    finally:
        with anyio.CancelScope(shield=True):
            await _stop(process)
    ended = _read_end(place.ended)
    if scope.cancelled_caught:
        return ended, f"it took more than {task.file.limits.seconds:g} s"
    if ended is None:
        last = (told.read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["without a word"])[-1]
        return None, f"its process ended with {process.returncode}: {last}"
    failed = "" if ended.status == "finished" else f"the run ended as {ended.status} ({ended.reason}): {ended.answer}"
    return ended, failed


async def _stop(process: anyio.abc.Process) -> None:
    """End a run with all that it started: in order if it can, by force after that."""
    family: list[psutil.Process] = []
    if process.returncode is None:
        with contextlib.suppress(psutil.Error):
            family = psutil.Process(process.pid).children(recursive=True)
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        with anyio.move_on_after(STOP_SECONDS):
            await process.wait()
    for member in family:
        with contextlib.suppress(psutil.Error):
            member.kill()
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    await process.aclose()


def _read_end(path: Path) -> Ended | None:
    if not path.is_file():
        return None
    return Ended(**json.loads(path.read_text(encoding="utf-8")))


def measure_logs(place: Place, result: Result, since: datetime | None) -> None:
    """Add up what the events of the run say, also of one that was ended in the middle."""
    for log in place.state.glob(f"*/*/*/{EVENTS_FILE}"):
        with contextlib.suppress(InvalidInput, OSError):
            for event in read_events(log.parent):
                if since is None or event.timestamp >= since:
                    count_event(result, event.event_type, event.payload)


AGENT = Way("agent", "benchmarks.agent_tasks.child", measure_logs)


def count_event(result: Result, kind: str, payload: Mapping[str, Any]) -> None:
    """Add an event to what a run has used."""
    if kind == EventType.LLM_RESPONSE_RECEIVED:
        _add(result.usage, payload)
    elif kind == EventType.SKILL_STEP_EXECUTED:
        tool = str((payload.get("params") or {}).get("tool") or payload.get("type"))
        result.tools[tool] = result.tools.get(tool, 0) + 1


def _add(usage: Usage, payload: Mapping[str, Any]) -> None:
    def count(name: str) -> int:
        value = payload.get(name)
        return value if isinstance(value, int) else 0

    usage.turns += 1
    usage.input_tokens += count("input_tokens")
    usage.output_tokens += count("output_tokens")
    usage.cached_tokens += count("cached_tokens")
    usd = payload.get("usd")
    usage.usd = None if usage.usd is None or not isinstance(usd, (int, float)) else usage.usd + usd
