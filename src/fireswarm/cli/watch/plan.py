"""Print, change and approve a plan that waits for a person."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory, mkstemp
from typing import Annotated, Any

import anyio.to_thread
import typer

from fireswarm.cli.shared.operate import TaskId, operate
from fireswarm.cli.shared.options import AsJson, Project, Root, StoreUri, board_settings, print_json, run_async
from fireswarm.client import Swarm
from fireswarm.contracts.base import command_line
from fireswarm.contracts.limits import shown_id
from fireswarm.contracts.skills.skill import Question
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import GraphInvalid, InvalidInput
from fireswarm.swarm.submission.plan_review import (
    find_plan,
    list_planned,
    parse_plan,
    request_for_plan,
    write_plan,
)

_HEAD = "# The plan of task {}. Change, add and delete tasks; an empty file changes nothing.\n"


def plan(
    task_id: TaskId,
    edit: Annotated[bool, typer.Option("--edit", help="Change the plan in your $EDITOR, then approve it.")] = False,
    file: Annotated[
        Path | None, typer.Option("--file", help="Approve the plan in this YAML file, in place of the proposed one.")
    ] = None,
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Print the plan that waits for your approval as YAML, or change it and approve it.

    A plan waits after `swarm submit --review-plan`. `swarm approve` runs it unchanged, `swarm deny` sends it back.
    """
    settings = board_settings(root, store, project)
    if not edit and file is None:
        run_async(lambda: _print(settings, task_id, as_json))
        return

    async def act(swarm: Swarm, task: Task) -> Task:
        asked = find_plan(task)
        text = await anyio.to_thread.run_sync(_text_of, file, asked, task)
        try:
            tasks = parse_plan(text)
            return await swarm.approve(task, request_for_plan(task, asked), plan=tasks)
        except (InvalidInput, GraphInvalid) as error:
            raise InvalidInput(f"the plan was not approved: {error}{_keep(text, file, task)}") from error

    operate(settings, task_id, act, as_json, "approved the changed plan of")


async def _print(settings: Any, task_id: str, as_json: bool) -> None:
    async with Swarm.open(settings=settings, create=False) as swarm:
        task = await swarm.find(task_id)
        asked = find_plan(task)
        if as_json:
            print_json(list_planned(asked))
        else:
            typer.echo(write_plan(asked), nl=False)


def _text_of(file: Path | None, asked: Question, task: Task) -> str:
    """Return the changed plan. Raises InvalidInput for a file that cannot be read, and Exit if nothing was changed."""
    if file is not None:
        try:
            return file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"{file} cannot be read: {error}") from error
    if not sys.stdin.isatty():
        raise InvalidInput("--edit needs a terminal: write the plan to a file, change it, and give it with --file")
    before = _HEAD.format(task.task_id) + write_plan(asked)
    after = _edit(before)
    if after == before or not after.strip():
        runs = command_line("swarm", "approve", shown_id(task.task_id))
        typer.echo(f"nothing was changed: `{runs}` runs the plan", err=True)
        raise typer.Exit(1)
    return after


def _edit(text: str) -> str:
    """Return the text as the person's editor leaves it. Raises InvalidInput if the editor fails."""
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    with TemporaryDirectory(prefix="fireswarm-plan-") as place:
        file = Path(place) / "plan.yaml"
        file.write_text(text)
        try:
            subprocess.run([*editor, str(file)], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise InvalidInput(f"the editor {editor[0]} failed ({error}): set EDITOR, or use --file") from error
        return file.read_text()


def _keep(text: str, file: Path | None, task: Task) -> str:
    """Store an edited text that cannot be used, and return how to go on with it."""
    if file is not None:
        return ""
    name = f"plan-{shown_id(task.task_id)}-"
    try:
        handle, kept = mkstemp(".yaml", name, Path.cwd())
    except OSError:
        handle, kept = mkstemp(".yaml", name)
    os.close(handle)
    Path(kept).write_text(text)
    again = command_line("swarm", "plan", shown_id(task.task_id), "--file", kept)
    return f". Your text is in {kept}: correct it, then `{again}`"
