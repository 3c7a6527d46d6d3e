"""Trace a task through a worker, and a call of a model through its run; count how often the code changes files.

    python tools/trace_turn.py [--list]

A move is a function call that leads into another file of the worker's path than the call before it. The trace goes
from the claim to the settled task, in the worker's own thread, for the second task of a worker. Reading a property is
not a call. Left out are the store adapter, contracts, settings, redaction and the files of the root.
"""

from __future__ import annotations

import argparse
import os
import sys
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType, ModuleType
from typing import Any

import anyio

import fireswarm
from fireswarm.agent.embedded import run_agent
from fireswarm.contracts.swarm.task import TaskSpec, TaskStatus
from fireswarm.llm.providers.scripted import ScriptedModel
from fireswarm.settings import AgentSettings, load_settings
from fireswarm.swarm.opening.open_parts import open_parts
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.turn.turn import run_turn

SOURCE = str(Path(fireswarm.__file__).parent)
LEFT_OUT = ("storage/", "contracts/", "settings/", "redaction/", "processes/startup.py")
CALL_LEFT_OUT = ("contracts/", "settings/", "redaction/")
MAX_MOVES = 25
FIRST_INSTRUCTIONS = 10
"""Bytecode offset up to which a frame has just begun: RETURN_GENERATOR, POP_TOP, RESUME, and free variables."""

ROLE = "---\nname: librarian\ndescription: Counts words.\nskills:\n  - count-words\n---\n# Librarian\n\nYou count.\n"
SKILL = (
    '---\nname: count-words\ndescription: Counts words.\nmetadata:\n  version: "1.0.0"\n  entry: scripts/skill.py\n'
    '  writes: "false"\n'
    "---\n# Count words\n"
)
CODE = (
    "from fireswarm.contracts.skills.skill import SkillResult\n\n\n"
    "def run(request):\n    return SkillResult(summary='counted')\n"
)


READ: dict[str, Any] = {"calls": [{"name": "read_file", "input": {"path": "a.txt"}}], "text": "I look."}


class Trace:
    """The calls of one thread, as (file, function), in order."""

    def __init__(self, left_out: tuple[str, ...] = LEFT_OUT) -> None:
        self.calls: list[tuple[str, str]] = []
        self._left_out = left_out
        self._getters = _property_code()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(SOURCE) or code in self._getters:
            return
        file = code.co_filename[len(SOURCE) + 1 :]
        if "/" in file and not file.startswith(self._left_out) and not code.co_name.startswith("<") and _begins(frame):
            self.calls.append((file, code.co_name))

    def moves(self) -> list[tuple[str, str]]:
        """Return the first call after each move to another file, preceded by the very first call."""
        return [call for place, call in enumerate(self.calls) if not place or self.calls[place - 1][0] != call[0]]


def _begins(frame: FrameType) -> bool:
    """Return False for a coroutine that resumes after an await: its frame has executed instructions before."""
    return frame.f_lasti <= FIRST_INSTRUCTIONS


def _property_code() -> set[CodeType]:
    """Return the code of every property and cached property of the package's loaded classes."""
    found: set[CodeType] = set()
    modules = [module for name, module in sys.modules.items() if name.startswith("fireswarm.")]
    for kind in {item for module in modules for item in _classes(module)}:
        for value in list(vars(kind).values()):
            getter = value.fget if isinstance(value, property) else getattr(value, "func", None)
            if isinstance(value, property | cached_property) and getter is not None:
                found.add(getter.__code__)
    return found


def _classes(module: ModuleType) -> list[type]:
    return [value for value in list(vars(module).values()) if isinstance(value, type)]


async def trace_task(folder: Path) -> Trace:
    """Run two tasks of a role with one skill and return the trace of the second."""
    for name, text in (
        ("roles/librarian/ROLE.md", ROLE),
        ("skills/count-words/SKILL.md", SKILL),
        ("skills/count-words/scripts/skill.py", CODE),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    settings = load_settings(folder, overrides={"store.uri": "memory"})
    async with open_parts(settings) as swarm:
        await _work(swarm, "the first")
        trace = Trace()
        await _work(swarm, "the second", trace)
    return trace


async def _work(swarm: SwarmParts, objective: str, trace: Trace | None = None) -> None:
    claimer = swarm.board.claimer("librarian", "librarian-1")
    spec = TaskSpec(objective=objective, assigned_to="librarian", session_hash=swarm.settings.session)
    task_id = (await swarm.board.submit(spec)).task.task_id
    sys.setprofile(trace)
    try:
        [lease] = await claimer.claim(1)
        end = await run_turn(lease, swarm)
        await swarm.board.settle(lease, end.outcome, end.writes)
    finally:
        sys.setprofile(None)
    if (await swarm.board.get(task_id)).status is not TaskStatus.DONE:
        raise RuntimeError(f"the traced task was not done: {end.outcome}")


async def trace_call(folder: Path) -> Trace:
    """Run a stand-alone agent that reads a file, and return the trace from its call to the next message."""
    (folder / "a.txt").write_text("hello\n", encoding="utf-8")
    here = Path.cwd()
    os.chdir(folder)
    trace, model = Trace(CALL_LEFT_OUT), ScriptedModel([READ, "done"])
    sys.setprofile(trace)
    try:
        await run_agent("what is in a.txt?", model=model, settings=AgentSettings())
    finally:
        sys.setprofile(None)
        os.chdir(here)
    first = next(place for place, call in enumerate(trace.calls) if call == ("mind/run.py", "execute"))
    last = next(place for place, call in enumerate(trace.calls[first:], first) if call == ("llm/prompt.py", "say"))
    trace.calls = trace.calls[first : last + 1]
    return trace


def main() -> int:
    """Print the moves of both paths. Returns 1 if one has more than allowed, else 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--list", action="store_true", help="print every move")
    every: bool = parser.parse_args().list
    code = 0
    for path, trace in (("a task", trace_task), ("a call", trace_call)):
        with TemporaryDirectory() as folder:
            moves = anyio.run(trace, Path(folder)).moves()
        if every:
            for file, function in moves:
                print(f"{file}: {function}")
        count, files = len(moves) - 1, len({file for file, _ in moves})
        print(f"{path}: {count} moves between {files} files (at most {MAX_MOVES})")
        code = code or int(count > MAX_MOVES)
    return code


if __name__ == "__main__":
    sys.exit(main())
