"""Work on an objective in copies of one loaded process; the first is killed by ``kill -9`` before or after a commit.

``python -m tests.support.killed_rounds FOLDER STORE MOMENT FEW`` kills at the commits that `choose_moments` names, each
in a folder of its own. STORE is firelite or emulator, MOMENT before or after. The plan fails,
changes, asks, revises and is followed up.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import traceback
import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from fireswarm.clocks import VirtualClock
from fireswarm.contracts.llm.chat import ChatRequest
from fireswarm.contracts.ports import Write
from fireswarm.contracts.swarm.task import Task, TaskStatus
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.turn.turn import run_turn
from tests.integration.test_inputs import part, plan
from tests.integration.test_plan_rounds import finish
from tests.integration.test_thinking import act, answers_so_far, decide, submit, thinking, told
from tests.support.crashes import choose_moments
from tests.support.swarm import ROLES, SwarmRig, open_emulator_swarm, open_test_swarm

LOOPS = 80
TOLD = ("look again", "are you sure?")
"""What a conversation is told by another task: its opening is that of an earlier request."""

BEGIN = datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Scene:
    """A folder and a store that outlive a process, and the commit at which the process dies."""

    folder: Path
    store: str
    project: str
    moment: str = "before"
    kill_at: int = 0
    minutes: int = 0

    def open(self) -> contextlib.AbstractAsyncContextManager[SwarmRig]:
        clock = VirtualClock(BEGIN + timedelta(minutes=self.minutes))
        kept = self.folder / "kept"
        if self.store == "firelite":
            return open_test_swarm(clock=clock, keep=kept)
        return open_emulator_swarm(self.project, clock=clock, keep=kept)


class Roles:
    """A model for every role: its answer follows from what it is told, so a repeated request has the same answer."""

    def __init__(self, asked: Path) -> None:
        self._asked = asked

    def __call__(self, request: ChatRequest) -> dict[str, Any]:
        first, number = request.messages[0].text, answers_so_far(request)
        everything = "\n".join(told_by(message) for message in request.messages)
        key = [opening_of(first), number, *(words in everything for words in TOLD)]
        with self._asked.open("a") as asked:
            asked.write(json.dumps([key, everything]) + "\n")
        if first.startswith("# Task\nlook at a\n"):
            if "are you sure?" in everything:
                return "a is sure"  # type: ignore[return-value]
            return "a is good" if "look again" in everything else give_up()  # type: ignore[return-value]
        if first.startswith("# Task\nlook at b\n"):
            return "b is good"  # type: ignore[return-value]
        if first.startswith("# Task\nlook at c\n"):
            return self.write(everything, told(request))
        match first.partition("Round ")[2][:1]:
            case "":
                return plan(part("a"), part("b", "predictor"), part("c", "executor", depends_on=["a"]))
            case "1":
                return finish(retry=[{"key": "a", "note": "look again"}])
            case "2" if "a is sure" not in everything:
                return decide(act("ask", to="a", question="are you sure?"))
            case "2":
                return finish(revise=[{"key": "c", "note": "say more"}])
            case _:
                return finish("one more is done" if "one more" in everything else "the end")

    def write(self, everything: str, last: str) -> dict[str, Any]:
        if "say more" not in everything:
            if "stored artifact" in everything:
                return "written"  # type: ignore[return-value]
            return decide(act("write_artifact", name="c.md", content="short"))
        if "14 bytes" in last:
            return finish("said more")
        return decide(act("write_artifact", name="c.md", content="short and long"))


def told_by(message: Any) -> str:
    return "\n".join([message.role, message.text, *(output.text for output in message.outputs)])


def opening_of(first: str) -> str:
    """Return what tells a conversation from the others: its task and its round."""
    return first[:20] + first.partition("Round ")[2][:1]


def give_up() -> dict[str, Any]:
    return decide(act("finish", answer="", status="failed", reason="nothing is there"))


async def objective(swarm: SwarmRig, core: SwarmParts, agent: str, root_id: str) -> Task:
    """Work on the objective, then on its follow-up, and return the latter."""
    root = await work(swarm, core, agent, root_id)
    following = (await swarm.board.go_on(root.task_id, "one more", "1")).task
    return await work(swarm, core, agent, following.task_id)


async def work(swarm: SwarmRig, core: SwarmParts, agent: str, root_id: str) -> Task:
    """Let all roles work until the objective ends."""
    for _ in range(LOOPS):
        busy = False
        for role in ROLES:
            for held in await swarm.claim(agent, role):
                busy = True
                ending = await run_turn(held, core)
                await swarm.board.settle(held, ending.outcome, ending.writes)
        root = await swarm.task(root_id)
        if root.status.terminal:
            return root
        if not busy:
            await swarm.clock.advance(120)
            for role in ROLES:
                await swarm.board.sweep(role)
    states = [(task.plan_key, task.status.value, task.summary) for task in await swarm.board.list()]
    raise AssertionError(f"the objective did not end: {states}")


async def live(scene: Scene, then: Callable[[], object]) -> None:
    """Submit the objective, or find it, and work until it and its follow-up are done; *then* is told of each commit."""
    async with scene.open() as swarm:
        known = scene.folder / "objective"
        if known.exists():
            for role in ROLES:
                await swarm.board.sweep(role)
        else:
            known.write_text((await submit(swarm, scene.folder, role="architect")).task_id)
        count_commits(swarm, scene, then)
        core = thinking(swarm, Roles(scene.folder / "asked"), scene.folder)
        root_id = known.read_text()
        await check(swarm, root_id, await objective(swarm, core, f"after {scene.minutes}", root_id))
    texts: dict[str, set[str]] = defaultdict(set)
    for line in (scene.folder / "asked").read_text().splitlines():
        key, everything = json.loads(line)
        texts[str(key)].add(everything)
    changed = [key for key, found in texts.items() if len(found) > 1]
    assert not changed, f"the model got other bytes for the same decision: {changed}"


def count_commits(swarm: SwarmRig, scene: Scene, then: Callable[[], object]) -> None:
    commits, real = 0, swarm.store.commit

    def end() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    async def commit(writes: list[Write], **options: Any) -> Any:
        nonlocal commits
        commits += 1
        then()
        if (commits, scene.moment) == (scene.kill_at, "before"):
            end()
        done = await real(writes, **options)
        if commits == scene.kill_at:
            end()
        return done

    swarm.store.commit = commit


async def check(swarm: SwarmRig, root_id: str, last: Task) -> None:
    tasks = await swarm.board.list()
    keys = sorted(task.plan_key for task in tasks)
    assert keys == ["", "", "a", "b", "c", "call.2.1.1", "c~2"], f"a task is missing, or was made twice: {keys}"
    assert {task.status for task in tasks} == {TaskStatus.DONE}
    root = await swarm.task(root_id)
    assert root.result is not None and root.result.summary == "the end"
    assert last.result is not None and last.result.summary == "one more is done"
    [report] = [artifact for artifact in root.result.artifacts if artifact.uri]
    assert await swarm.core.blobs.get(str(report.uri)) == b"short and long"


Play = Callable[[Scene, Callable[[], object]], Awaitable[None]]
"""Lives through a scene, and calls its second argument at each event that counts."""


def run_copy(scene: Scene, play: Play = live) -> tuple[int, int]:
    """Run *play* in a copy of this process; returns its exit code, negative for a signal, and what it counted."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            anyio.run(partial(play, scene, lambda: os.write(write, b".")))
            code = 0
        except BaseException:
            traceback.print_exc()
        sys.stderr.flush()
        os._exit(code)
    os.close(write)
    commits = 0
    while piece := os.read(read, 4_096):
        commits += len(piece)
    os.close(read)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), commits


def new_scene(folder: Path, store: str, **more: Any) -> Scene:
    folder.mkdir(parents=True)
    (folder / "kept").mkdir()
    return Scene(folder, store, f"killed-{uuid.uuid4().hex[:8]}", **more)


def main(root: Path, store: str, moment: str, few: int) -> int:
    """Run once whole, then be killed at each wanted commit and go on in another process; returns how many."""
    code, commits = run_copy(new_scene(root / "0", store))
    assert code == 0 and commits > 30, (code, commits)
    numbers = choose_moments(commits, few)
    for number in numbers:
        scene = new_scene(root / str(number), store, moment=moment, kill_at=number)
        killed = run_copy(scene)
        assert killed == (-signal.SIGKILL, number), (number, killed)
        later = Scene(scene.folder, store, scene.project, minutes=10)
        code, _ = run_copy(later)
        assert code == 0, f"killed {moment} commit {number}: the next process failed"
    print(f"killed {moment} {len(numbers)} of {commits} commits on {store}")
    return len(numbers)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]))
