"""``swarm artifacts``: copy a task's artifacts from the blob store into a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from fireswarm.cli.shared.options import AsJson, Project, Root, StoreUri, board_settings, console, print_json, run_async
from fireswarm.client import Swarm
from fireswarm.contracts.skills.artifact import Artifact
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import InvalidInput
from fireswarm.pipelines.files import safe_path
from fireswarm.settings.run_folders import make_state_folder
from fireswarm.swarm.records.artifacts import read_content

FOLDER = Path(".fireswarm") / "artifacts"


def artifacts(
    task_id: Annotated[str, typer.Argument(help="Task id or a unique prefix of it.")],
    to: Annotated[Path | None, typer.Option("--to", help="Target folder; default: .fireswarm/artifacts/TASK.")] = None,
    as_json: AsJson = False,
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
) -> None:
    """Copy a task's artifacts into a folder."""

    async def main() -> list[Path]:
        settings = board_settings(root, store, project)
        async with Swarm.open(settings=settings, create=False) as swarm:
            task = await swarm.find(task_id)
            return await copy_out(swarm, task, to or settings.path(FOLDER / task.task_id))

    written = run_async(main)
    if as_json:
        print_json([str(path) for path in written])
        return
    for path in written:
        console.print(str(path), markup=False, soft_wrap=True)


async def copy_out(swarm: Swarm, task: Task, folder: Path) -> list[Path]:
    """Write the task's artifacts below *folder*, named after them. Raises InvalidInput if it has none."""
    if task.result is None or not task.result.artifacts:
        raise InvalidInput(f"task {task.task_id} is {task.status.value} and has no artifacts")
    written: dict[Path, None] = {}
    for number, artifact in enumerate(task.result.artifacts):
        path = folder / _name(artifact, number)
        if path in written:
            path = path.with_name(f"{number}-{path.name}")
        make_state_folder(path.parent)
        path.write_bytes(await _content(swarm, artifact))
        written[path] = None
    return list(written)


async def copy_one(swarm: Swarm, artifact: Artifact, folder: Path) -> Path:
    """Write one artifact below *folder*, under a safe name, and return its path."""
    content = await read_content(swarm.parts.blobs, artifact)
    path = folder / content.file_name
    make_state_folder(path.parent)
    path.write_bytes(content.data)
    return path


def _name(artifact: Artifact, number: int) -> str:
    named = artifact.name or (artifact.uri or "").rpartition("/")[2]
    try:
        return safe_path(named) if artifact.uri else f"{safe_path(named or artifact.type)}.json"
    except InvalidInput:  # a name that is not a path, such as a title with a colon
        return f"{number}-{artifact.type}"


async def _content(swarm: Swarm, artifact: Artifact) -> bytes:
    if artifact.uri is None:
        return (json.dumps(artifact.value, indent=2, ensure_ascii=False, default=str) + "\n").encode()
    return await swarm.parts.blobs.get(artifact.uri)
