"""The folder of a task, and the folders of the tasks that it plans: none is outside of the task's own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fireswarm.contracts.skills.skill import PlannedTask
from fireswarm.errors import InvalidInput, NotFound
from fireswarm.processes.confinement.paths.names import OWN_FOLDER
from fireswarm.processes.confinement.protected import is_kept
from fireswarm.runs.skill_runner import FILE_KEYS, places_named, texts_in
from fireswarm.skills.running.denied_reads import DeniedReads
from fireswarm.swarm.turn.state import Turn

_ADDRESS_CHARS = re.compile(r"[%?#]|.://")


def named_workspace(turn: Turn) -> Path | None:
    """Return the folder that the task's context names, or None.

    Raises InvalidInput if it does not exist: in an empty folder, a model would find nothing to work on.
    """
    path = _named_path(turn.request.context, turn.swarm.settings.path(Path()))
    if path is None:
        return None
    if not path.exists():
        raise InvalidInput(f"context.path names {path}, which does not exist on this machine")
    return (path if path.is_dir() else path.parent).resolve()


def with_whole_path(task: PlannedTask, turn: Turn) -> PlannedTask:
    """Return a task planned by a model with its path in full: a relative one is relative to the planner's own folder.

    Raises InvalidInput for a path that does not exist, or that is outside of that folder.
    """
    base = named_workspace(turn) or turn.swarm.settings.path(Path())
    task = _with_whole_files(task, turn, base)
    path = _planned_path(task, base)
    if path is None:
        return task
    if not path.exists():
        raise InvalidInput(f"context.path of {task.key} names {path}, which does not exist: list_files shows what does")
    _check_inside(task, "path", path, turn)
    return task.model_copy(update={"context": {**task.context, "path": str(path.resolve())}})


def check_planned_paths(tasks: tuple[PlannedTask, ...], turn: Turn) -> tuple[PlannedTask, ...]:
    """Return *tasks*, planned by code, with the files of their contexts in full.

    Raises InvalidInput if one works in a folder outside of the planning task's own.
    """
    base = turn.swarm.settings.path(Path())
    for task in tasks:
        path = _planned_path(task, base)
        if path is not None and path.exists():
            _check_inside(task, "path", path, turn)
    return tuple(_with_whole_files(task, turn, base) for task in tasks)


def _with_whole_files(task: PlannedTask, turn: Turn, base: Path) -> PlannedTask:
    """Return a planned task with the files that its context names beside ``path`` in full, after a check of all.

    Code that comes with fireswarm opens them with the rights of the worker. Raises InvalidInput for a file or folder
    outside of the planning task's folder, unless that task was given it under the same name.
    """
    request, whole = turn.request, dict[str, str]()
    given = {*texts_in(request.context), *texts_in(request.answers), *(item.uri for item in request.attachments)}
    known = {place for text in given for place in places_named("source", text, base)}
    for name, value in task.context.items():
        for text in set(texts_in(value)):
            places = list(places_named(name, text, base))
            if not places and name in FILE_KEYS and text == value and "://" not in text.removeprefix("file://"):
                places = [(base / Path(text.strip().removeprefix("file://")).expanduser()).resolve()]  # made later
            for place in places:
                if place not in known and text.strip(" /"):
                    _check_inside(task, name, place, turn)
                if name in FILE_KEYS and text == value:
                    whole[name] = str(place)
    return task.model_copy(update={"context": {**task.context, **whole}}) if whole else task


def _planned_path(task: PlannedTask, base: Path) -> Path | None:
    """Return the path of a planned task. Raises InvalidInput for an address of a file that can mean another path."""
    named = task.context.get("path")
    if isinstance(named, str) and named.startswith("file://") and _ADDRESS_CHARS.search(named.removeprefix("file://")):
        raise InvalidInput(f"context.path {named} of {task.key} is no plain path: give it without file://")
    return _named_path(task.context, base)


def _named_path(context: Mapping[str, Any], base: Path) -> Path | None:
    """Return the path that a context names, relative to *base*; None for no path, and for an address."""
    named = context.get("path")
    if isinstance(named, str) and "file:" in named.removeprefix("file://").casefold():
        raise InvalidInput(f"context.path {named} is no path of a file")
    if not isinstance(named, str) or not named.strip() or "://" in named.removeprefix("file://"):
        return None
    path = Path(named.removeprefix("file://")).expanduser()
    return path if path.is_absolute() else base / path


def _check_inside(task: PlannedTask, name: str, path: Path, turn: Turn) -> None:
    """Raise InvalidInput if *path* leads out of the task's folder, into a store, or to what only a person changes.

    Names are protected and denied in the folder of a task: in a folder within it, they would not be found.
    """
    base = (named_workspace(turn) or turn.swarm.settings.path(Path())).resolve()
    place = path.resolve()
    named = f"context.{name} of {task.key} names {path}"
    if not place.is_relative_to(base):
        raise InvalidInput(
            f"{named}, which is outside of {base}: a planned task works in the folder "
            "of the task that plans it. Only a person can name another one, in the context of the objective"
        )
    parts = place.relative_to(base).parts
    if OWN_FOLDER in parts:
        raise InvalidInput(f"{named}, which belongs to the store")
    if place.is_dir() and is_kept(place, base):
        raise InvalidInput(f"{named}, which only a person changes: name it in the objective")
    if denied_reads(turn).hides(place, base):
        raise InvalidInput(f"{named}, which may not be read: the permissions deny it")


def denied_reads(turn: Turn) -> DeniedReads:
    """Return the files that no run of the turn reads."""
    rules = turn.card.permissions.and_also(turn.task.constraints.permissions)
    return DeniedReads((*turn.swarm.settings.permissions.deny, *rules.deny), turn.objective_folder)


async def find_objective_folder(turn: Turn) -> Path | None:
    """Return the folder of the objective of which the turn's task is a part; None if it is the task's own."""
    task, base = turn.task, turn.swarm.settings.path(Path())
    if task.trace.chain_id == task.task_id or not denied_reads(turn).rules:
        return None
    try:
        root = await turn.swarm.board.get(task.trace.chain_id)
    except (NotFound, InvalidInput):
        return base.resolve()
    path = _named_path(root.context, base) or base
    return (path.parent if path.is_file() else path).resolve()
