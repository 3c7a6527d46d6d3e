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
import yaml
from pydantic import TypeAdapter, ValidationError

from fireswarm.cli.shared.operate import TaskId, operate
from fireswarm.cli.shared.options import AsJson, Project, Root, StoreUri, board_settings, print_json, run_async
from fireswarm.client import Swarm
from fireswarm.contracts.base import command_line, explain_validation
from fireswarm.contracts.frontmatter import explain_yaml, load_yaml
from fireswarm.contracts.limits import shown_id
from fireswarm.contracts.skills.permissions import PLAN
from fireswarm.contracts.skills.skill import PlannedTask, Question
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import GraphInvalid, InvalidInput

_TASKS = TypeAdapter(tuple[PlannedTask, ...])

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
        asked = _find_question(task)
        text = await anyio.to_thread.run_sync(_text_of, file, asked, task)
        try:
            tasks = _parse(text)
            return await swarm.approve(task, _request(task, asked), plan=tasks)
        except (InvalidInput, GraphInvalid) as error:
            raise InvalidInput(f"the plan was not approved: {error}{_keep(text, file, task)}") from error

    operate(settings, task_id, act, as_json, "approved the changed plan of")


async def _print(settings: Any, task_id: str, as_json: bool) -> None:
    async with Swarm.open(settings=settings, create=False) as swarm:
        task = await swarm.find(task_id)
        asked = _find_question(task)
        if as_json:
            print_json(_list_proposed(asked))
        else:
            typer.echo(_as_yaml(asked), nl=False)


def _find_question(task: Task) -> Question:
    """Return the question for another plan. Raises InvalidInput if no plan waits."""
    asked = next((item for item in task.questions if item.name == PLAN and "default" in item.allowed), None)
    if asked is None:
        raise InvalidInput(
            f"no plan of task {task.task_id} waits for approval: `swarm submit --review-plan` asks for one, and "
            f"`{command_line('swarm', 'show', shown_id(task.task_id))}` prints the tasks of a plan that runs"
        )
    return asked


def _request(task: Task, asked: Question) -> str:
    """Return the id of the request for approval that *asked* belongs to."""
    return next(item.key for item in task.questions if item.approval is not None and item.step == asked.step)


def _list_proposed(asked: Question) -> list[dict[str, Any]]:
    """Return the proposed tasks, each with its fields in the usual order, which a store does not keep."""
    return [
        {name: task[name] for name in PlannedTask.model_fields if name in task} for task in asked.allowed["default"]
    ]


def _as_yaml(asked: Question) -> str:
    return yaml.safe_dump(_list_proposed(asked), sort_keys=False, allow_unicode=True, width=100)


def _text_of(file: Path | None, asked: Question, task: Task) -> str:
    """Return the changed plan. Raises InvalidInput for a file that cannot be read, and Exit if nothing was changed."""
    if file is not None:
        try:
            return file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"{file} cannot be read: {error}") from error
    if not sys.stdin.isatty():
        raise InvalidInput("--edit needs a terminal: write the plan to a file, change it, and give it with --file")
    before = _HEAD.format(task.task_id) + _as_yaml(asked)
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


def _parse(text: str) -> tuple[PlannedTask, ...]:
    """Return the tasks of a YAML text. Raises InvalidInput for a text that is no plan."""
    try:
        loaded = load_yaml(text)
    except yaml.YAMLError as error:
        raise InvalidInput(f"it is not YAML: {explain_yaml(error)}") from error
    if not isinstance(loaded, list):
        raise InvalidInput("it must be a list of tasks, each with key, assigned_to and objective")
    try:
        return _TASKS.validate_python(loaded)
    except ValidationError as error:
        raise InvalidInput(explain_validation(error)) from error


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
