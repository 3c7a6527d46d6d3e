"""``swarm pipeline``: run pipelines and resume them, check trace maps, and show the report of a port."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from fireswarm.cli.demo.demo import DEMO_LEASE_SECONDS
from fireswarm.cli.demo.demonstrate import demonstrate
from fireswarm.cli.pipelines import files
from fireswarm.cli.pipelines.steps import draw_pipeline, draw_run
from fireswarm.cli.shared.operate import TaskId
from fireswarm.cli.shared.options import (
    AsJson,
    Project,
    Root,
    Session,
    StoreUri,
    board_settings,
    console,
    pairs,
    run_async,
    settings_for,
)
from fireswarm.cli.shared.submit_options import Again, Attached, parse_attachments
from fireswarm.cli.shared.tables import one_line, table
from fireswarm.cli.swarm.tasks import submit_task
from fireswarm.cli.watch.artifacts import FOLDER, copy_out
from fireswarm.client import Swarm
from fireswarm.contracts.base import command_line, count_noun, explain_validation
from fireswarm.contracts.limits import shown_id
from fireswarm.contracts.skills.advice import TraceMap
from fireswarm.contracts.swarm.task import Task, TaskSpec, TaskStatus
from fireswarm.errors import InvalidInput, NotFound, SandboxRefused
from fireswarm.pipelines.definition import SUFFIX, Pipeline
from fireswarm.pipelines.loading import PipelineFile
from fireswarm.pipelines.node.schema import NodeSchema
from fireswarm.pipelines.packages import find_node
from fireswarm.pipelines.registered.node import INFERRED, TRACE
from fireswarm.pipelines.rounds import RESUMES, count_kept
from fireswarm.pipelines.trace import trace_faults
from fireswarm.redaction import sanitize
from fireswarm.settings.packaged import packaged_path
from fireswarm.swarm.opening.confinement import refusal
from fireswarm.swarm.records.pipeline_runs import read_steps

app_ = typer.Typer(help="Make, check, run and resume pipelines of steps.", no_args_is_help=True)
app_.command()(files.new)
app_.command("list")(files.list_pipelines)
app_.command()(files.check)
SESSION = "pipeline-demo"
SHIPPED = packaged_path("pipelines") / "node" / "demo"
PUBLISHED = "n8n-nodes-shelf"
"""A built node of ours, as npm would publish it."""

REPORT = "port_report.json"
ADVISOR = "advisor.py:answer"
ACTIVE = (TaskStatus.QUEUED, TaskStatus.IN_PROGRESS)
KEPT = (
    "objective", "assigned_to", "session_hash", "skill", "model", "effort", "fallback", "constraints", "capabilities",
    "attachments", "priority", "max_attempts", "on_child_failure", "expected_outcome", "review_plan",
)  # fmt: skip
"""Fields that a run has in common with the one that it resumes."""

NoWait = Annotated[bool, typer.Option("--no-wait", help="Submit only; `swarm watch` follows the run.")]


@app_.command()
def demo(
    source: Annotated[Path | None, typer.Argument(help="Source of the node; default: the shipped example.")] = None,
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
) -> None:
    """Run the pipeline on the included sources with a scripted advisor: store and five roles as processes, no key."""
    places, left_out = choose_sources(source)
    overrides: dict[str, Any] = {"leases.lease_seconds": DEMO_LEASE_SECONDS, "worker.think": "auto"}
    if source is None:
        overrides |= {"model.provider": "scripted", "model.script": str(SHIPPED / ADVISOR)}
    settings = settings_for(root, store, project, SESSION, **overrides)
    if reason := refusal(settings.backbone.confinement):
        raise SandboxRefused(f"the pipeline runs the tests that it generates: {reason}")
    specs = [
        TaskSpec(
            objective=f"Make a node from {each.name}",
            assigned_to="architect",
            session_hash=SESSION,
            skill=f"node{SUFFIX}",
            context={"source": str(each)},
            fresh_key=uuid.uuid4().hex,
        )
        for each in places
    ]

    async def trail(swarm: Swarm, task_id: str) -> None:
        ended = await swarm.get(task_id)
        if ended.result is not None:
            folder = settings.path(FOLDER / task_id)
            _show_trail(folder, await copy_out(swarm, ended, folder))

    for place, spec in zip(places, specs, strict=True):
        if place == SHIPPED / PUBLISHED:
            console.print(f"\nNow a published node: {PUBLISHED} is run, and its Python port is proven by replay.\n")
        if run_async(partial(demonstrate, settings, project, spec, then=trail)) is not TaskStatus.DONE:
            raise typer.Exit(1)
    if left_out:
        console.print(f"\n{left_out}", soft_wrap=True, markup=False)


def choose_sources(source: Path | None) -> tuple[list[Path], str]:
    """Return the sources of the demo, and what it leaves out and why, or "". Raises InvalidInput."""
    if source is not None:
        if not source.exists():
            raise InvalidInput(f"{source} does not exist: name the file or folder of a node's source")
        return [source.resolve()], ""
    sources = [SHIPPED / "Linkshelf.node.ts"]
    try:
        find_node()
    except InvalidInput as error:
        return sources, f"left out: the port of a published node, which is proven by replay: {error}"
    return [*sources, SHIPPED / PUBLISHED], ""


def _show_trail(folder: Path, written: list[Path]) -> None:
    """Print the files of the run and their folder."""
    console.print(f"artifacts in {folder}", soft_wrap=True, markup=False)
    names = {path.relative_to(folder).as_posix(): path for path in written}
    rows = [(name, f"{path.stat().st_size:,}") for name, path in sorted(names.items())]
    table("artifacts", ("artifact", "bytes"), rows, none="no artifacts")


@app_.command()
def show(
    name: Annotated[str, typer.Argument(help="A pipeline, or the task of a run of one.")],
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Show the steps of a pipeline, or how far each step of a run is, why it stands still, and how to go on."""

    async def main() -> None:
        async with Swarm.open(settings=board_settings(root, store, project), create=False) as swarm:
            pipelines = swarm.parts.pipelines
            if (file := pipelines.by_skill.get(f"{name}{SUFFIX}")) is not None:
                draw_pipeline(file, as_json=as_json)
                return
            if any(path.stem == name for path, _ in pipelines.left_out):
                pipelines.get(name)
            run, file = await _find_run(swarm, name)
            await draw_run(swarm, run, file, as_json=as_json)

    run_async(main)


async def _find_run(swarm: Swarm, named: str) -> tuple[Task, PipelineFile]:
    """Return the run to which a task belongs, with its pipeline. Raises InvalidInput and NotFound."""
    try:
        task = await swarm.find(named)
    except NotFound as error:
        known = ", ".join(sorted(each.name for each in swarm.parts.pipelines.by_skill.values()))
        raise NotFound(
            f"{named} is neither a pipeline nor a task; pipelines: {known}. `swarm tasks` lists the tasks"
        ) from error
    tasks = {task.task_id: task}
    if task.skill not in swarm.parts.pipelines.by_skill and task.parent_task_id is not None:
        tasks |= await swarm.relatives(task)
        task = tasks.get(task.parent_task_id) or await swarm.get(task.parent_task_id)
    file = swarm.parts.pipelines.by_skill.get(task.skill or "")
    if file is None:
        show = command_line("swarm", "show", shown_id(task.task_id))
        raise InvalidInput(f"task {named} is no run of a pipeline: `{show}` shows it")
    return task, file


@app_.command()
def run(
    name: Annotated[str, typer.Argument(help="Pipeline to run.")],
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--input", help="key=value of an input, repeatable. An existing file or folder is given by its whole path."
        ),
    ] = None,
    attach: Attached = None,
    objective: Annotated[str, typer.Option("--objective", help="What the run is for; a step may read it.")] = "",
    again: Again = "",
    no_wait: NoWait = False,
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
    session: Session = None,
    as_json: AsJson = False,
) -> None:
    """Run a pipeline and follow its steps; exit code 1 unless all are done. The same inputs give the same run."""
    settings = settings_for(root, store, project, session)

    async def main() -> TaskStatus:
        async with Swarm.open(settings=settings) as swarm:
            file = swarm.parts.pipelines.get(name)
            spec = TaskSpec(
                objective=objective or f"Run the pipeline {name}",
                assigned_to=file.pipeline.role,
                session_hash=settings.session,
                skill=file.skill_name,
                context=_inputs(file.pipeline, pairs(given, "--input"), bool(attach)),
                attachments=parse_attachments(attach),
                fresh_key=again,
            )
            return await submit_task(swarm, spec, wait=not no_wait, as_json=as_json)

    if run_async(main) is not TaskStatus.DONE:
        raise typer.Exit(1)


def _inputs(pipeline: Pipeline, given: Mapping[str, Any], attached: bool) -> dict[str, Any]:
    """Return the context of a run. Raises InvalidInput for an input that no step reads, and for a missing one."""
    known = {*pipeline.inputs, *(key for step in pipeline.steps for key in step.reads)} - {"objective"}
    if unknown := sorted(given.keys() - known):
        raise InvalidInput(f"--input {unknown[0]}: no step reads it; known: {', '.join(sorted(known)) or 'none'}")
    missing = [name for name in pipeline.inputs if name not in given and not (attached and name == "source")]
    if missing:
        asked = "; ".join(f"--input {name}=... ({pipeline.inputs[name]})" for name in missing)
        raise InvalidInput(f"the run needs {asked}")
    return {key: _whole_path(value) for key, value in given.items()}


def _whole_path(value: Any) -> Any:
    """Return the whole path of an existing file or folder, since roles may work in another folder; else the value."""
    if not isinstance(value, str) or not value or "\0" in value:
        return value
    with contextlib.suppress(OSError):  # a text may be too long for a name
        if (path := Path(value).expanduser()).exists():
            return str(path.resolve())
    return value


@app_.command()
def resume(
    task_id: TaskId,
    step: Annotated[str, typer.Option("--from", help="First step that runs again.")],
    again: Again = "",
    no_wait: NoWait = False,
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Run a pipeline again from one step on, as a new task with the files of the earlier steps, which do not run again.

    The earlier run stays as it is. It must have ended or stopped.
    """

    async def main() -> TaskStatus:
        async with Swarm.open(settings=board_settings(root, store, project), create=False) as swarm:
            earlier, file = await _find_run(swarm, task_id)
            steps = await read_steps(swarm.parts.store, earlier, file.pipeline)
            if active := [task for task in (*steps, earlier) if task.status in ACTIVE]:
                stop = command_line("swarm", "cancel", shown_id(earlier.task_id), "--tree")
                raise InvalidInput(
                    f"the run still works: {active[0].plan_key or 'its plan'} is {active[0].status.value}. Wait for "
                    f"it, or stop it with `{stop}`"
                )
            count_kept(file.pipeline, [(task.plan_key, task.status.value) for task in steps], step)
            return await submit_task(swarm, _resuming(earlier, step, again), wait=not no_wait, as_json=as_json)

    if run_async(main) is not TaskStatus.DONE:
        raise typer.Exit(1)


def _resuming(earlier: Task, step: str, again: str) -> TaskSpec:
    """Return the run that resumes an earlier one from a step, with what that was given and answered."""
    given = {name: getattr(earlier, name) for name in KEPT}
    context = {**earlier.context, **earlier.answers, RESUMES: {"task_id": earlier.task_id, "step": step}}
    return TaskSpec(**given, context=context, fresh_key=again)


@app_.command()
def trace(
    path: Annotated[Path, typer.Argument(help="A trace_map.json, or the folder of a run's artifacts.")],
) -> None:
    """Check a trace map: each field cites evidence, at most 30 % are assumptions. Exit code 1 if it fails."""
    folder, file = (path, path / TRACE) if path.is_dir() else (path.parent, path)
    try:
        found = TraceMap.model_validate(_read(file))
        schema = NodeSchema.model_validate(_read(folder / INFERRED))
    except ValidationError as error:
        raise InvalidInput(f"{file}: {explain_validation(error)}") from error
    bundle = folder / "source_bundle"
    sources = {item.relative_to(bundle).as_posix(): item.read_text("utf-8") for item in _files(bundle)}
    faults = trace_faults(found, schema.fields(), sources if bundle.is_dir() else None)
    for fault in faults:
        console.print(f"{file}: {fault}", markup=False, soft_wrap=True)
    assumed = sum(entry.kind == "ASSUMPTION" for entry in found.fields.values())
    looked_up = "" if bundle.is_dir() else "; evidence not checked: no source_bundle/ next to it"
    console.print(f"{len(found.fields)} fields, {assumed} assumed, {len(faults)} faults{looked_up}", soft_wrap=True)
    if faults:
        raise typer.Exit(1)


@app_.command()
def report(
    path: Annotated[Path, typer.Argument(help="A port_report.json, or the folder of a run's artifacts.")],
) -> None:
    """Show what of a port is proven by replay, and what is not, and why. Exit code 1 if an operation differs."""
    file = path / REPORT if path.is_dir() else path
    content = _read(file)
    try:
        rows = [_report_row(operation) for operation in content["operations"]]
        head = f"{content['node']}: {content['proven']:,} of {content['present']:,} operations proven by replay"
        if found := content.get("mutants"):
            head += f"; the tests find {found['killed']:,} of {count_noun(found['made'], 'change')} of the code"
    except (LookupError, TypeError, ValueError) as error:
        raise InvalidInput(f"{file} is not the report of a port: {error!r}") from error
    console.print(sanitize(head), markup=False, soft_wrap=True)
    table("operations", ("operation", "state", "inputs", "written by", "why"), rows, none="no operations")
    page = file.with_suffix(".html")
    if page.is_file():
        console.print(f"as a page: {page}", markup=False, soft_wrap=True)
    if any(row[1] == "differs" for row in rows):
        raise typer.Exit(1)


def _report_row(operation: dict[str, Any]) -> tuple[str, ...]:
    inputs = f"{operation['passed']}/{operation['inputs']}" if operation.get("inputs") else ""
    why = operation["why"] or operation.get("unexplained", "")
    key, state = sanitize(str(operation["key"])), sanitize(str(operation["state"]))
    return key, state, inputs, sanitize(str(operation.get("written_by", ""))), sanitize(one_line(str(why)))


def _files(bundle: Path) -> list[Path]:
    return sorted(item for item in bundle.rglob("*") if item.is_file()) if bundle.is_dir() else []


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InvalidInput(f"{path} does not exist: copy a run's artifacts with `swarm artifacts TASK`") from error
    except ValueError as error:
        raise InvalidInput(f"{path} is not valid JSON: {error}") from error
