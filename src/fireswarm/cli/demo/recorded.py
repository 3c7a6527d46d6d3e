"""A demo with recorded answers of a model: five roles repair a sample project through the real loop."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from fireswarm.capabilities.text_diff import text_diff
from fireswarm.cli.demo.demonstrate import demonstrate
from fireswarm.cli.shared.options import console, run_async, settings_for
from fireswarm.cli.watch.approval_view import draw_diff
from fireswarm.client import Swarm
from fireswarm.contracts.base import command_line
from fireswarm.contracts.swarm.task import Task, TaskSpec, TaskStatus
from fireswarm.settings.packaged import packaged_path

SESSION = "recorded"
OBJECTIVE = "The tests of this shop fail. Find out why, repair it, and report."
ANSWER = "up"

INTRODUCTION = """\
No model is called: the answers of the five roles are recorded, written by hand in the form in which a model gives them.
All else is real: role processes, leases, delegated tasks, files that are read and edited, tests that run.
"""


def run_recorded() -> int:
    """Run the demo in a temporary folder, which is not removed; returns the exit code."""
    sample = packaged_path("samples") / "rounding"
    root = Path(tempfile.mkdtemp(prefix="fireswarm-recorded-"))
    project = root / "project"
    shutil.copytree(sample / "project", project, ignore=shutil.ignore_patterns("__pycache__"))
    console.print(INTRODUCTION, style="dim", soft_wrap=not console.is_terminal)
    console.print(f"objective: {OBJECTIVE}\nproject:   {project}", soft_wrap=True, markup=False)
    script = {"model.provider": "scripted", "model.script": str(sample / "recording.json"), "worker.think": "auto"}
    settings = settings_for(root, None, None, SESSION, **script)
    spec = TaskSpec(objective=OBJECTIVE, assigned_to="architect", session_hash=SESSION, context={"path": str(project)})
    status = run_async(lambda: demonstrate(settings, None, spec, told=True, answer=_answer_as_recorded))
    if status is not TaskStatus.DONE:
        return 1
    console.print("the change:", style="bold")
    _print_change(sample / "project" / "prices.py", project / "prices.py")
    console.print(
        f"\nInspect the folder: {project}\nList its tasks: {command_line('swarm', 'tasks', '--root', root)}\n"
        f"With a key, the same roles use your model: swarm demo --think",
        soft_wrap=True,
        markup=False,
    )
    return 0


async def _answer_as_recorded(swarm: Swarm, task: Task) -> None:
    """Answer the questions of a task as the recording does."""
    for question in task.questions:
        console.print(f"\n{task.assigned_to} asks: {question.description}", style="yellow", markup=False)
        console.print(f"recorded answer: {ANSWER}\n", style="yellow")
    await swarm.answer(task, {question.key: ANSWER for question in task.questions})


def _print_change(before: Path, after: Path) -> None:
    draw_diff(text_diff("prices.py", before.read_text(encoding="utf-8"), after.read_text(encoding="utf-8")), indent="")
