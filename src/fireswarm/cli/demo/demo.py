"""The command ``swarm demo``: the store and all five roles on one objective."""

from __future__ import annotations

import hashlib
import uuid
from pathlib import Path
from typing import Annotated

import typer

from fireswarm.cli.demo.demonstrate import demonstrate
from fireswarm.cli.demo.recorded import run_recorded
from fireswarm.cli.shared.options import Project, Root, StoreUri, run_async, settings_for
from fireswarm.contracts.swarm.task import TaskSpec, TaskStatus
from fireswarm.errors import InvalidInput

DEMO_OBJECTIVE = (
    "Report on this folder: what is in it, what changed, and which files are most likely to cause trouble next"
)
DEMO_LEASE_SECONDS = 20.0
"""Short, so that recovery from a killed process is visible during the demo."""


def demo(
    path: Annotated[Path, typer.Argument(help="Folder to report on; default: the current one.")] = Path(),
    objective: Annotated[str, typer.Option("--objective", help="Objective of the demo.")] = DEMO_OBJECTIVE,
    think: Annotated[bool, typer.Option("--think", help="Use the model: costs tokens and needs an API key.")] = False,
    recorded: Annotated[
        bool,
        typer.Option("--recorded", help="Watch five roles repair a sample project, with recorded answers of a model."),
    ] = False,
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
) -> None:
    """Run a demo: start the store and all five roles, submit one objective, and show its report."""
    if recorded:
        if think or objective != DEMO_OBJECTIVE or path != Path():
            raise InvalidInput(
                "--recorded has its own folder and objective, and calls no model: omit the other options"
            )
        raise typer.Exit(run_recorded())
    folder = path.resolve()
    if not folder.is_dir():
        raise InvalidInput(f"{path} is not a folder: name an existing one")
    session = f"folder-{hashlib.sha256(str(folder).encode()).hexdigest()[:12]}"
    overrides = {"leases.lease_seconds": DEMO_LEASE_SECONDS, "worker.think": "auto" if think else "never"}
    settings = settings_for(root, store, project, session, **overrides)
    spec = TaskSpec(
        objective=objective,
        assigned_to="architect",
        session_hash=session,
        context={"path": str(folder)},
        fresh_key=uuid.uuid4().hex,
    )

    if run_async(lambda: demonstrate(settings, project, spec, told=think)) is not TaskStatus.DONE:
        raise typer.Exit(1)
