"""``swarm open``: print the path of a task's artifact, and open it on a desktop."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from fireswarm.cli.shared.operate import TaskId
from fireswarm.cli.shared.options import Project, Root, StoreUri, board_settings, console, run_async
from fireswarm.cli.watch.artifacts import FOLDER, copy_one
from fireswarm.client import Swarm
from fireswarm.contracts.ports import Blobs
from fireswarm.contracts.skills.artifact import STORED_VALUE, Artifact
from fireswarm.swarm.records.artifacts import find_artifact

OPENED = frozenset(
    {".csv", ".diff", ".gif", ".jpeg", ".jpg", ".json", ".jsonl", ".log", ".md",
     ".patch", ".pdf", ".png", ".svg", ".tsv", ".txt", ".webp", ".yaml", ".yml"}
)  # fmt: skip
"""Suffixes of the files that are opened. A desktop may execute other types, such as ``.desktop`` files and scripts."""


def open_artifact(
    task_id: TaskId,
    name: Annotated[str, typer.Argument(help="Name of the artifact; default: the first one.")] = "",
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
) -> None:
    """Print the path of a task's artifact. On a terminal, also open a document or image on the desktop."""

    async def main() -> Path:
        settings = board_settings(root, store, project)
        async with Swarm.open(settings=settings, create=False) as swarm:
            task = await swarm.find(task_id)
            artifact = find_artifact(task, name)
            return _local_file(swarm.parts.blobs, artifact) or await copy_one(
                swarm, artifact, settings.path(FOLDER / task.task_id)
            )

    path = run_async(main)
    console.print(str(path), soft_wrap=True)
    opener = _opener()
    if console.is_terminal and opener is not None and path.suffix.lower() in OPENED:
        subprocess.run([opener, str(path)], check=False, stderr=subprocess.DEVNULL)


def _opener() -> str | None:
    """Return the desktop's opener; None if there is none, such as in a remote terminal."""
    if sys.platform == "darwin":
        return shutil.which("open")
    return shutil.which("xdg-open") if {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys() else None


def _local_file(blobs: Blobs, artifact: Artifact) -> Path | None:
    """Return the artifact's file if it is on this machine and not an encoded value."""
    if artifact.uri is None or artifact.mime == STORED_VALUE:
        return None
    located = blobs.locate(artifact.uri)
    path = Path(located.removeprefix("file://"))
    return path if located.startswith("file://") and path.is_file() else None
