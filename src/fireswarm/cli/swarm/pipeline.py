"""``swarm pipeline``: run the node pipeline on its example, check trace maps, and show the report of a port."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from fireswarm.cli.demo.demo import DEMO_LEASE_SECONDS
from fireswarm.cli.demo.demonstrate import demonstrate
from fireswarm.cli.shared.options import Project, Root, StoreUri, console, run_async, settings_for
from fireswarm.cli.shared.tables import one_line, table
from fireswarm.cli.watch.artifacts import FOLDER, copy_out
from fireswarm.client import Swarm
from fireswarm.contracts.base import explain_validation
from fireswarm.contracts.skills.advice import TraceMap
from fireswarm.contracts.swarm.task import TaskSpec, TaskStatus
from fireswarm.errors import InvalidInput, SandboxRefused
from fireswarm.pipelines.definition import SUFFIX
from fireswarm.pipelines.node.schema import NodeSchema
from fireswarm.pipelines.registered.node import INFERRED, TRACE
from fireswarm.pipelines.trace import trace_faults
from fireswarm.redaction import sanitize
from fireswarm.settings.packaged import packaged_path
from fireswarm.swarm.opening.confinement import refusal

app_ = typer.Typer(help="Run the node pipeline, which makes a tested patch from a source.", no_args_is_help=True)
SESSION = "pipeline-demo"
REPORT = "port_report.json"
ADVISOR = "advisor.py:answer"


@app_.command()
def demo(
    source: Annotated[Path | None, typer.Argument(help="Source of the node; default: the shipped example.")] = None,
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
) -> None:
    """Run the pipeline on the included source with a scripted advisor: store and five roles as processes, no key."""
    shipped = packaged_path("pipelines") / "node" / "demo"
    place = (source or shipped / "Linkshelf.node.ts").resolve()
    if not place.exists():
        raise InvalidInput(f"{source} does not exist: name the file or folder of a node's source")
    overrides: dict[str, Any] = {"leases.lease_seconds": DEMO_LEASE_SECONDS, "worker.think": "auto"}
    if source is None:
        overrides |= {"model.provider": "scripted", "model.script": str(shipped / ADVISOR)}
    settings = settings_for(root, store, project, SESSION, **overrides)
    if reason := refusal(settings.backbone.confinement):
        raise SandboxRefused(f"the pipeline runs the tests that it generates: {reason}")
    spec = TaskSpec(
        objective=f"Make a node from {place.name}",
        assigned_to="architect",
        session_hash=SESSION,
        skill=f"node{SUFFIX}",
        context={"source": str(place)},
        fresh_key=uuid.uuid4().hex,
    )

    async def trail(swarm: Swarm, task_id: str) -> None:
        ended = await swarm.get(task_id)
        if ended.result is not None:
            folder = settings.path(FOLDER / task_id)
            _show_trail(folder, await copy_out(swarm, ended, folder))

    if run_async(lambda: demonstrate(settings, project, spec, then=trail)) is not TaskStatus.DONE:
        raise typer.Exit(1)


def _show_trail(folder: Path, written: list[Path]) -> None:
    """Print the files of the run and their folder."""
    console.print(f"artifacts in {folder}", soft_wrap=True, markup=False)
    names = {path.relative_to(folder).as_posix(): path for path in written}
    rows = [(name, f"{path.stat().st_size:,}") for name, path in sorted(names.items())]
    table("artifacts", ("artifact", "bytes"), rows, none="no artifacts")


@app_.command()
def check(
    path: Annotated[Path, typer.Argument(help="A trace_map.json, or the folder of a run's artifacts.")],
) -> None:
    """Check a trace map: each field cites evidence, at most 30 % are assumptions. Exit code 1 if it fails."""
    folder, file = (path, path / TRACE) if path.is_dir() else (path.parent, path)
    try:
        trace = TraceMap.model_validate(_read(file))
        schema = NodeSchema.model_validate(_read(folder / INFERRED))
    except ValidationError as error:
        raise InvalidInput(f"{file}: {explain_validation(error)}") from error
    bundle = folder / "source_bundle"
    sources = {item.relative_to(bundle).as_posix(): item.read_text("utf-8") for item in _files(bundle)}
    faults = trace_faults(trace, schema.fields(), sources if bundle.is_dir() else None)
    for fault in faults:
        console.print(f"{file}: {fault}", markup=False, soft_wrap=True)
    assumed = sum(entry.kind == "ASSUMPTION" for entry in trace.fields.values())
    looked_up = "" if bundle.is_dir() else "; evidence not checked: no source_bundle/ next to it"
    console.print(f"{len(trace.fields)} fields, {assumed} assumed, {len(faults)} faults{looked_up}", soft_wrap=True)
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
