"""The steps of a pipeline as a table: those of its file, and how far they are in a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from fireswarm.cli.shared.options import console, print_json, style_status
from fireswarm.cli.shared.tables import Cell, cell, one_line, table
from fireswarm.client import Swarm
from fireswarm.contracts.base import command_line
from fireswarm.contracts.limits import shown_id
from fireswarm.contracts.skills.artifact import PIPELINE_FILE
from fireswarm.contracts.swarm.task import WAITS_FOR_OTHERS, Task, TaskStatus
from fireswarm.pipelines.definition import Pipeline, PipelineStep
from fireswarm.pipelines.loading import PipelineFile
from fireswarm.pipelines.rounds import step_id
from fireswarm.swarm.records.pipeline_runs import read_steps

SUMMARY_CHARS = 100
NOT_YET, LEFT_OUT = "not yet", "left out"
"""States of a step without a task: the run has not reached it, or its condition did not hold."""


def draw_pipeline(file: PipelineFile, *, as_json: bool) -> None:
    """Print the steps of a pipeline."""
    pipeline = file.pipeline
    if as_json:
        print_json({"name": file.name, "path": file.path, **pipeline.model_dump(mode="json")})
        return
    console.prose(f"{file.name} {pipeline.version}: {one_line(pipeline.description)}")
    console.print(f"file: {file.path}", soft_wrap=True)
    for name, question in pipeline.inputs.items():
        console.prose(f"input {name}: {question}")
    rows = [
        (
            step.id,
            step.role,
            step.mode.value if step.mode is not None else "of the skill",
            ", ".join(pipeline.needs_of(step)),
            "; ".join(_details(step)),
        )
        for step in pipeline.steps
    ]
    table("steps", ["step", "role", "mode", "needs", "leaves"], rows, none="no steps", folded=("needs",))
    limits = pipeline.limits
    console.prose(f"limits of a run: {limits.steps} steps, {limits.fixes} repetitions, {limits.files} changed files")


def _details(step: PipelineStep) -> Iterator[str]:
    """Yield the files that a step leaves, and what else its definition says."""
    yield ", ".join(step.leaves) or "no files"
    if step.skill_name != step.id:
        yield f"skill {step.skill_name}"
    if step.reads:
        yield f"reads {', '.join(step.reads)}"
    if step.gates:
        yield f"gates {', '.join(step.gates)}"
    if step.scope:
        yield f"may change {', '.join(step.scope)}"
    if step.when:
        yield f"if {' and '.join(map(str, step.when))}"
    if step.loop is not None:
        again = f", then {', '.join(step.loop.again)}" if step.loop.again else ""
        otherwise = f", else {step.loop.otherwise}" if step.loop.otherwise else ""
        yield f"until {step.loop.until}: at most {step.loop.most} times{again}{otherwise}"


async def draw_run(swarm: Swarm, run: Task, file: PipelineFile, *, as_json: bool) -> None:
    """Print how far each step of a run is, why it does not move, and the line that resumes it."""
    pipeline = file.pipeline
    steps = await read_steps(swarm.parts.store, run, pipeline)
    stuck = [task for task in steps if _is_stuck(task)] or [task for task in (run,) if _is_stuck(task)]
    lines = [(task, await swarm.explain(task)) for task in stuck]
    resume = line_to_resume(run, steps, pipeline)
    if as_json:
        print_json(
            {
                "task": run.task_id,
                "pipeline": file.name,
                "status": _state(run),
                "steps": [*_as_json(run, steps, pipeline)],
                "why": [why for _, why in lines],
                "resume": resume,
            }
        )
        return
    console.print(f"{run.task_id}  {file.name}", style_status(_state(run)), soft_wrap=True)
    console.prose(run.objective)
    rows: list[tuple[Cell, ...]] = [
        (
            row["step"],
            shown_id(row["task_id"]) if row["task_id"] else "-",
            style_status(row["status"]),
            str(row["runs"]),
            _count_files(row["files"]),
            cell(one_line(row["summary"]), SUMMARY_CHARS),
        )
        for row in _as_json(run, steps, pipeline)
    ]
    table("steps", ["step", "task", "status", "runs", "files", "summary"], rows, none="no steps", folded=("files",))
    for task, why in lines:
        told = "" if task.summary in why else f" {task.summary}"
        console.prose(f"{task.plan_key or 'run'}:{told}")
        console.prose(why, style="yellow")
    if run.result is not None and run.result.artifacts:
        console.print(f"files: {command_line('swarm', 'artifacts', shown_id(run.task_id))}", soft_wrap=True)
    if resume:
        console.print(f"resume: {resume}", soft_wrap=True)


def line_to_resume(run: Task, steps: Sequence[Task], pipeline: Pipeline) -> str:
    """Return the command that resumes a run that was given up or canceled, or ""."""
    if not (run.given_up or run.status is TaskStatus.CANCELED):
        return ""
    order = [step.id for step in pipeline.in_order]
    failed = [step_id(task.plan_key) for task in steps if task.status is not TaskStatus.DONE]
    reached = [step_id(task.plan_key) for task in steps if step_id(task.plan_key) in order]
    first = next((name for name in failed if name in order), reached[-1] if reached else "")
    return command_line("swarm", "pipeline", "resume", shown_id(run.task_id), "--from", first) if first else ""


def _is_stuck(task: Task) -> bool:
    return task.status is TaskStatus.BLOCKED and task.status_reason not in WAITS_FOR_OTHERS


def _state(task: Task) -> str:
    return task.status_reason.value if task.status_reason else task.status.value


def _as_json(run: Task, steps: Sequence[Task], pipeline: Pipeline) -> Iterator[dict[str, Any]]:
    """Yield the state of each task of a run, then of the steps that have none, in the order of the file."""
    order = [step.id for step in pipeline.in_order]
    ran = [step_id(task.plan_key) for task in steps]
    last = max((order.index(name) for name in ran if name in order), default=-1)
    waiting = [name for name in order if name not in ran]
    for task in steps:
        name = step_id(task.plan_key)
        while waiting and name in order and order.index(waiting[0]) < order.index(name):
            yield _without_task(waiting.pop(0), LEFT_OUT)
        yield {
            "step": task.plan_key,
            "task_id": task.task_id,
            "status": _state(task),
            "runs": task.epoch,
            "kept": task.parent_task_id != run.task_id,
            "files": _list_written(task),
            "summary": task.summary if task.parent_task_id == run.task_id else f"kept: {task.summary}",
        }
    for name in waiting:
        ended = order.index(name) < last or run.status is TaskStatus.DONE
        yield _without_task(name, LEFT_OUT if ended else NOT_YET)


def _without_task(name: str, state: str) -> dict[str, Any]:
    return {"step": name, "task_id": "", "status": state, "runs": 0, "kept": False, "files": [], "summary": ""}


def _list_written(task: Task) -> list[str]:
    """Return the names of the files that a step has written."""
    artifacts = task.result.artifacts if task.result is not None else ()
    return [item.name for item in artifacts if item.type == PIPELINE_FILE and item.source_task_id == task.task_id]


def _count_files(names: Sequence[str]) -> str:
    """Return the names of files, those of a folder as their number."""
    folders = Counter(f"{name.partition('/')[0]}/" if "/" in name else name for name in names)
    return ", ".join(f"{name} ({count})" if name.endswith("/") else name for name, count in folders.items())
