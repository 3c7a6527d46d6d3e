"""Run a pipeline in copies of one loaded process; the first is killed by ``kill -9`` at a step, the next one goes on.

``python -m tests.support.killed_steps FOLDER PIPELINE MOMENT FEW`` kills at the executions of skills that
`choose_moments` names, each in a folder of its own. MOMENT is ``during`` (the skill has run, its result is not stored;
it runs again, since it is idempotent) or ``after`` (the task is settled).
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from fireswarm.contracts.swarm.task import Task, TaskStatus
from fireswarm.settings.packaged import packaged_path
from fireswarm.swarm.turn.engines import by_advice
from fireswarm.swarm.turn.turn import run_turn
from tests.support.crashes import choose_moments
from tests.support.killed_rounds import LOOPS, Scene, new_scene, run_copy
from tests.support.pipeline import DEMO, advised, family, files, shipped_advisor
from tests.support.swarm import ROLES, SwarmRig

CSV = packaged_path("pipelines") / "csv-contract" / "example"
INPUTS: dict[str, dict[str, str]] = {
    "node": {"source": str(DEMO / "Linkshelf.node.ts")},
    "csv-contract": {
        "contract": str(CSV / "contract.yaml"),
        "sample": str(CSV / "sample.csv"),
        "data": str(CSV / "drifted.csv"),
    },
}
DATED = ("request_snapshot.json", "pull_request.json", "pull_request.patch")
"""Files with the time of the run; what they hold besides is compared by the steps that read them."""


async def live(pipeline: str, scene: Scene, then: Callable[[], object]) -> None:
    """Submit the run, or find it, and work until it is done; *then* is told of each execution of a skill."""
    async with scene.open() as swarm:
        known = scene.folder / "objective"
        if known.exists():
            for role in ROLES:
                await swarm.board.sweep(role)
        else:
            skill = f"{pipeline}-pipeline"
            run = await swarm.submit("run it", role="architect", skill=skill, context=dict(INPUTS[pipeline]))
            known.write_text(run.task_id)
        is_due = count_executions(scene, then)
        core = advised(swarm, partial(ask, scene.folder / "asked"))
        root = await swarm.task(known.read_text())
        for _ in range(LOOPS):
            if root.status.terminal:
                break
            root = await one_round(swarm, core, is_due, root.task_id)
        tasks = await family(swarm, root)
        assert {task.status for task in tasks.values()} == {TaskStatus.DONE}, {
            name: (task.status.value, task.summary) for name, task in tasks.items()
        }
        left = {name: text for name, text in (await files(swarm, root)).items() if name not in DATED}
        (scene.folder / "left.json").write_text(json.dumps([sorted(tasks), left], sort_keys=True))


async def one_round(swarm: SwarmRig, core: Any, is_due: Callable[[], bool], root_id: str) -> Task:
    """Let each role work on what is queued; time passes if there is nothing. Returns the run."""
    busy = False
    for role in ROLES:
        for held in await swarm.claim(f"{role}-1", role):
            busy = True
            ending = await run_turn(held, core)
            await swarm.board.settle(held, ending.outcome, ending.writes)
            if is_due():
                end()
    if not busy:
        await swarm.clock.advance(120)
        for role in ROLES:
            await swarm.board.sweep(role)
    return await swarm.task(root_id)


def ask(place: Path, request: Any) -> dict[str, Any]:
    """Answer as the shipped advisor, and note that it was asked."""
    with place.open("a") as asked:
        asked.write("asked\n")
    return shipped_advisor()(request)


def count_executions(scene: Scene, then: Callable[[], object]) -> Callable[[], bool]:
    """Note each execution of a skill; returns what says that the process has to die after it has settled."""
    executed, real = 0, by_advice.run_in_process

    async def run_in_process(turn: Any, skill: Any, request: Any) -> Any:
        nonlocal executed
        executed += 1
        then()
        with (scene.folder / "executed").open("a") as place:
            place.write(f"{skill.name}\n")
        result = await real(turn, skill, request)
        if (executed, scene.moment) == (scene.kill_at, "during"):
            end()
        return result

    by_advice.run_in_process = run_in_process
    return lambda: scene.moment == "after" and 0 < scene.kill_at <= executed  # a step with advice executes twice


def end() -> None:
    """Kill this process."""
    os.kill(os.getpid(), signal.SIGKILL)


def read(scene: Scene) -> tuple[str, list[str], int]:
    """Return what a run left, the skills that it executed, and how often it asked."""
    asked = scene.folder / "asked"
    count = asked.read_text().count("\n") if asked.exists() else 0
    return (scene.folder / "left.json").read_text(), (scene.folder / "executed").read_text().split(), count


def main(root: Path, pipeline: str, moment: str, few: int) -> None:
    """Run once whole, then be killed at each wanted execution and go on in another process."""
    play = partial(live, pipeline)
    whole = new_scene(root / "0", "firelite")
    code, count = run_copy(whole, play)
    assert code == 0, code
    left, executed, asked = read(whole)
    numbers = choose_moments(count, few)
    for number in numbers:
        scene = new_scene(root / str(number), "firelite", moment=moment, kill_at=number)
        killed = run_copy(scene, play)
        assert killed[0] == -signal.SIGKILL and killed[1] >= number, (number, killed)
        code, _ = run_copy(Scene(scene.folder, "firelite", scene.project, minutes=10), play)
        where = f"killed {moment} the end of {executed[number - 1]}"
        assert code == 0, f"{where}: the next process failed"
        again = read(scene)
        assert again[0] == left, f"{where}: the run ended with other files"
        assert again[2] == asked, f"{where}: the advisor was asked {again[2]} times instead of {asked}"
        repeated = Counter(again[1]) - Counter(executed)
        allowed = {executed[number - 1]} if moment == "during" else set[str]()
        assert {*repeated} <= allowed, f"{where}: {dict(repeated)} ran again"
    print(f"killed {moment} {len(numbers)} of {count} executions of {pipeline}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]))
