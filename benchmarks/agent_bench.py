"""What the mind costs beside a plain loop over Anthropic's SDK, on a local server that answers at once.

Ten turns with nine tool calls, each way several times in turn (medians): the SDK's loop; the mind with its event
log in a file; the mind with its journal in the embedded store. Then start-up, memory of fifty runs at once, and
how cost a turn and the store grow from ten to a hundred turns.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anthropic
import anyio
from anthropic.types import MessageParam, ToolParam

from benchmarks.common import benchmark_kit
from fireswarm.clocks import ServerClock
from fireswarm.contracts.grant import Grant
from fireswarm.contracts.swarm.outcome import Done
from fireswarm.contracts.swarm.run import RunStatus
from fireswarm.contracts.swarm.task import TaskSpec
from fireswarm.llm.providers.anthropic import AnthropicModel
from fireswarm.mind import Assignment, Mind, Tool, think
from fireswarm.redaction import Redactor
from fireswarm.runs.make_mind import make_mind
from fireswarm.runs.sinks.files import RunLog, new_run_id
from fireswarm.settings import AgentSettings
from fireswarm.skills.packs.catalog import load_catalog
from fireswarm.swarm.board import HeldLease
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.turn.recorder import JournalRecorder
from fireswarm.swarm.turn.turn import open_journal
from tests.support.providers import FakeProviders, Received, Reply
from tests.support.wire_bodies import plain

ROUNDS = 15
MODEL = "claude-sonnet-5-5"
KEY = "no-key-for-a-local-server"
PARAMETERS: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
TOOL: ToolParam = {"name": "add", "description": "Adds two numbers.", "input_schema": {"type": "object", **PARAMETERS}}
SYSTEM = "You add numbers. Answer as the protocol says."


async def add(given: Mapping[str, Any]) -> int:
    return int(given["a"]) + int(given["b"])


@contextlib.contextmanager
def fake_server(turns: int) -> Any:
    """The local server in a process of its own; yields its address."""
    command = [sys.executable, "-m", "tests.support.providers", "--turns", str(turns)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdin is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


async def sdk_loop(client: anthropic.AsyncAnthropic) -> int:
    """The loop a developer writes; returns the turns."""
    messages: list[MessageParam] = [{"role": "user", "content": "add up"}]
    turns = 0
    while True:
        answer = await client.messages.create(
            model=MODEL, max_tokens=1024, system=SYSTEM, tools=[TOOL], messages=messages
        )
        turns += 1
        messages.append({"role": "assistant", "content": answer.content})
        calls = [block for block in answer.content if block.type == "tool_use"]
        if not calls:
            return turns
        results: list[Any] = []
        for call in calls:
            given: Any = call.input
            results.append({"type": "tool_result", "tool_use_id": call.id, "content": str(await add(given))})
        messages.append({"role": "user", "content": results})


def settings() -> AgentSettings:
    return AgentSettings.model_validate(
        {"model": {"stream": False, "max_context_tokens": 1_000_000}, "runtime": {"max_turns": 1_000}}
    )


def assignment(cwd: Path) -> Assignment:
    tool = Tool("add", "Adds two numbers.", PARAMETERS, add)
    return Assignment("add up", SYSTEM, Grant(cwd), tools={"add": tool}, named=None)


@contextlib.asynccontextmanager
async def mind_for(url: str, folder: Path) -> AsyncGenerator[Mind]:
    """A mind whose model is the local server; one skill, so that there is something to route to."""
    skill = folder / "skills" / "adding"
    skill.mkdir(parents=True, exist_ok=True)
    (skill / "SKILL.md").write_text("---\nname: adding\ndescription: Adds up numbers.\n---\n# Adding\n\nAdd.\n")
    catalog = load_catalog([folder / "skills"])
    model = AnthropicModel.direct(MODEL, KEY, base_url=url)
    yield make_mind(settings(), catalog, ServerClock(), folder, environment={}, model=model)
    await model.aclose()


async def with_log(mind: Mind, folder: Path) -> int:
    clock = ServerClock()
    run_id = new_run_id(clock.now())
    log = RunLog(folder / "runs" / run_id, run_id, clock, mind.redact)
    conclusion = await think(mind, assignment(folder), log)
    log.close()
    assert conclusion.answer == "done", conclusion
    return conclusion.turns


async def leased(swarm: SwarmParts, number: int) -> HeldLease:
    """A task of its own, claimed: this is not part of a turn."""
    spec = TaskSpec(objective=f"add up {number}", assigned_to="scout", session_hash="bench", fresh_key=str(number))
    await swarm.board.submit(spec)
    [held] = await swarm.board.claimer("scout", "bench-agent").claim(1)
    return held


async def with_journal(mind: Mind, swarm: SwarmParts, held: HeldLease) -> int:
    journal = await open_journal(held, swarm)
    conclusion = await think(mind, assignment(swarm.workdir), JournalRecorder(journal, mind.redact))
    await swarm.board.settle(held, Done(), journal.closing(RunStatus.COMPLETED, conclusion.answer, None, None))
    assert conclusion.answer == "done", conclusion
    return conclusion.turns


async def per_turn(call: Callable[[], Awaitable[int]]) -> float:
    """Milliseconds of wall time a turn."""
    started = time.perf_counter()
    turns = await call()
    return (time.perf_counter() - started) * 1_000 / turns


async def overhead(turns: int, rounds: int) -> dict[str, float]:
    """Medians of ms a turn, the three ways in turn; and what the journal added to the store's file."""
    times: dict[str, list[float]] = {"sdk": [], "mind": [], "mind_with_journal": []}
    with fake_server(turns) as url, tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        client = anthropic.AsyncAnthropic(api_key=KEY, base_url=url, max_retries=0)
        async with mind_for(url, folder) as mind, benchmark_kit() as swarm:
            swarm = replace(swarm, workdir=folder)
            for number in range(rounds):
                times["sdk"].append(await per_turn(lambda: sdk_loop(client)))
                times["mind"].append(await per_turn(lambda: with_log(mind, folder)))
                held = await leased(swarm, number)
                times["mind_with_journal"].append(await per_turn(lambda held=held: with_journal(mind, swarm, held)))
            await client.close()
    return {name: round(statistics.median(found), 3) for name, found in times.items()}


async def turns_a_second(runs: int, call: Callable[[], Awaitable[int]]) -> float:
    """Turns a second of *runs* runs at once."""
    ended: list[int] = []

    async def one() -> None:
        ended.append(await call())

    started = time.perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(runs):
            tasks.start_soon(one)
    return sum(ended) / (time.perf_counter() - started)


async def at_once(runs: int, rounds: int) -> dict[str, float]:
    """Turns a second of *runs* runs at once, medians, in turn; the first round opens the connections."""
    found: dict[str, list[float]] = {"sdk": [], "mind": []}
    with fake_server(10) as url, tempfile.TemporaryDirectory() as place:
        client = anthropic.AsyncAnthropic(api_key=KEY, base_url=url, max_retries=0)
        async with mind_for(url, Path(place)) as mind:
            for _ in range(rounds + 1):
                found["sdk"].append(await turns_a_second(runs, lambda: sdk_loop(client)))
                found["mind"].append(await turns_a_second(runs, lambda: with_log(mind, Path(place))))
        await client.close()
    medians = {name: round(statistics.median(values[1:])) for name, values in found.items()}
    return {**medians, "ratio": round(medians["mind"] / medians["sdk"], 2)}


async def store_growth(turns: int) -> float:
    """Megabytes that one run of *turns* adds to the store: pages used after five runs, less those after one."""
    sizes: list[int] = []
    with fake_server(turns) as url:
        for runs in (1, 5):
            with tempfile.TemporaryDirectory() as place:
                async with mind_for(url, Path(place)) as mind, benchmark_kit() as swarm:
                    for number in range(runs):
                        await with_journal(mind, replace(swarm, workdir=Path(place)), await leased(swarm, number))
                    path = swarm.settings.path(swarm.settings.store.data)
                    copy = Path(place) / "copy.db"
                    kept = [path, path.with_name(path.name + "-wal")]
                    shutil.copy(kept[0], copy)
                    shutil.copy(kept[1], copy.with_name("copy.db-wal"))
                sizes.append(used_bytes(copy))
    return round((sizes[1] - sizes[0]) / 4 / 1e6, 3)


def used_bytes(path: Path) -> int:
    """Bytes of the pages that a SQLite file uses, its write-ahead log packed in."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        pages, free, size = (
            int(connection.execute(f"PRAGMA {name}").fetchone()[0])
            for name in ("page_count", "freelist_count", "page_size")
        )
    return (pages - free) * size


async def memory(runs: int) -> dict[str, float]:
    """Peak resident memory that *runs* concurrent runs add, in MB."""
    with fake_server(10) as url, tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        async with mind_for(url, folder) as mind:
            await with_log(mind, folder)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            async with anyio.create_task_group() as tasks:
                for _ in range(runs):
                    tasks.start_soon(with_log, mind, folder)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"peak_mb": round(peak / 1024, 1), "added_mb": round((peak - before) / 1024, 1)}


LOOK = Tool("look", "Looks at a part of the text.", {"type": "object", "properties": {"n": {"type": "integer"}}}, add)
PAGE = "All work and no play makes a long page of text for a model to read.\n" * 45


async def sent(turns: int) -> dict[str, float]:
    """What the mind sends to do what the SDK's loop does with the same system text, tools and first message.

    Characters of all requests, and those after the part that the request before had as well: what no cache holds.
    """

    async def look(given: Mapping[str, Any]) -> str:
        return f"page {given['n']}\n{PAGE}"

    def script(request: Received) -> Reply:
        if request.answers + 1 >= turns:
            return Reply("done")
        return Reply(f"I look at page {request.answers}.", calls=(("look", {"n": request.answers}),))

    async with FakeProviders(script).serving() as served:
        with tempfile.TemporaryDirectory() as place:
            async with mind_for(served.url, Path(place)) as mind:
                given = replace(assignment(Path(place)), tools={"look": replace(LOOK, run=look)})
                run_id = new_run_id()
                log = RunLog(Path(place) / "runs" / run_id, run_id, ServerClock(), Redactor())
                await think(mind, given, log)
                log.close()
        ours = [request.body for request in served.calls]
        served.received.clear()
        client = anthropic.AsyncAnthropic(api_key=KEY, base_url=served.url, max_retries=0)
        messages: list[Any] = list(ours[0]["messages"])
        while True:
            answer = await client.messages.create(
                model=MODEL, max_tokens=1024, system=ours[0]["system"], tools=ours[0]["tools"], messages=messages
            )
            calls = [block for block in answer.content if block.type == "tool_use"]
            if not calls:
                break
            messages.append({"role": "assistant", "content": answer.content})
            results = [
                {"type": "tool_result", "tool_use_id": call.id, "content": await look(call.input)} for call in calls
            ]
            messages.append({"role": "user", "content": results})
        await client.close()
        theirs = [request.body for request in served.calls]
    assert len(ours) == len(theirs) == turns
    fixed = len(json.dumps([ours[0]["system"], ours[0]["tools"]]))
    return {
        "characters": round(_characters(ours) / _characters(theirs), 3),
        "uncached": round(_uncached(ours) / _uncached(theirs), 3),
        "system_and_tools": fixed,
    }


def _characters(bodies: list[dict[str, Any]]) -> int:
    return sum(len(json.dumps([body["system"], body["tools"], body["messages"]])) for body in bodies)


def _uncached(bodies: list[dict[str, Any]]) -> int:
    texts = [json.dumps(plain([body["system"], body["tools"], body["messages"]])) for body in bodies]
    shared = (len(os.path.commonprefix(pair)) for pair in zip(texts, texts[1:], strict=False))
    return sum(map(len, texts)) - sum(shared)


ONE_SHOT = """
import asyncio, anthropic
async def main():
    client = anthropic.AsyncAnthropic(base_url={url!r}, max_retries=0)
    await client.messages.create(model={model!r}, max_tokens=1024, messages=[{{"role": "user", "content": "add up"}}])
asyncio.run(main())
"""


def starting(rounds: int = 7) -> dict[str, float]:
    """Seconds from start to end of a process, medians, the four in turn."""
    bin_dir = Path(sys.executable).parent
    with fake_server(1) as url, tempfile.TemporaryDirectory() as place:
        environment = {**os.environ, "ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": url}
        environment["FIRESWARM_TRUST_SETTINGS"] = "1"  # the settings name the local server
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # compile each module once, as on any user's machine
        config = Path(place) / "agent.yaml"
        config.write_text(f"model:\n  providers:\n    anthropic:\n      base_url: {url}\n")
        commands = {
            "import_fireswarm": [sys.executable, "-c", "import fireswarm, fireswarm.mind"],
            "agent_help": [str(bin_dir / "agent"), "--help"],
            "sdk_one_turn": [sys.executable, "-c", ONE_SHOT.format(url=url, model=MODEL)],
            "agent_one_turn": [str(bin_dir / "agent"), "run", "add up", "--json"],
            "python": [sys.executable, "-c", "pass"],
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for number in range(rounds + 1):
            for name, command in commands.items():
                started = time.perf_counter()
                subprocess.run(command, cwd=place, env=environment, check=True, capture_output=True)
                if number:  # the first round compiles
                    times[name].append(time.perf_counter() - started)
    return {name: round(statistics.median(found), 3) for name, found in times.items()}


async def measure(rounds: int) -> dict[str, Any]:
    ten = await overhead(10, rounds)
    hundred = await overhead(100, max(3, rounds // 3))
    return {
        "benchmark": "agent",
        "ms_a_turn": {name: ten[name] for name in ("sdk", "mind", "mind_with_journal")},
        "overhead_ms": {
            "file_log": round(ten["mind"] - ten["sdk"], 3),
            "journal": round(ten["mind_with_journal"] - ten["sdk"], 3),
        },
        "growth_10_to_100": {
            name: round(hundred[name] / ten[name], 2) for name in ("sdk", "mind", "mind_with_journal")
        },
        "store_mb": {"100_turns": await store_growth(100), "200_turns": await store_growth(200)},
        "sent_to_sdk_loop": await sent(10),
        "turns_a_second_of_50_runs": await at_once(50, max(3, rounds // 3)),
        "memory_50_runs": await memory(50),
        "seconds_to_start": starting(),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    print(json.dumps(anyio.run(measure, parser.parse_args().rounds)))
