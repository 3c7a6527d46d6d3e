"""The files of a finished objective: those that its planner names, else those of its plan's last tasks. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from fireswarm.contracts.skills.artifact import STORED_VALUE, Artifact
from fireswarm.contracts.swarm.task import Task, TaskStatus
from fireswarm.swarm.turn.given.files import InputFiles


def named_files(files: InputFiles, paths: Sequence[str]) -> list[Artifact]:
    """Return the artifacts of input files by their paths; unknown paths are left out.

    Of two with the same name, the second has the folder of its giver before it.
    """
    known = {file.name: (folder, file.artifact) for folder, given in files.by_giver.items() for file in given}
    found: dict[str, Artifact] = {}
    for folder, artifact in (known[path] for path in dict.fromkeys(paths) if path in known):
        name = f"{folder}/{artifact.name}" if artifact.name in found else str(artifact.name)
        found[name] = artifact.model_copy(update={"name": name}) if artifact.name else artifact
    return [*found.values()]


def unknown_paths(files: InputFiles, paths: Sequence[str]) -> list[str]:
    """Return the paths that are no input files."""
    known = {file.name for given in files.by_giver.values() for file in given}
    return [path for path in paths if path not in known]


def with_files_of_last_tasks(artifacts: Sequence[Artifact], children: Sequence[Task]) -> tuple[Artifact, ...]:
    """Return the artifacts of a finished planner, with the files of its plan's last tasks first if it has none.

    The last tasks are those done on which no other task of the plan depends, and which were not sent back.
    """
    if any(_is_file(artifact) for artifact in artifacts):
        return tuple(artifacts)
    needed = {task_id for child in children for task_id in (*child.depends_on, child.continues)}
    last = [child for child in children if child.task_id not in needed and child.status is TaskStatus.DONE]
    found: list[Artifact] = []
    for child in last:
        names = {artifact.name for artifact in found}
        for artifact in child.result.artifacts if child.result is not None else ():
            if _is_file(artifact):
                named = f"{child.plan_key}/{artifact.name}" if artifact.name in names else artifact.name
                found.append(artifact.model_copy(update={"name": named}))
    return (*found, *artifacts)


def _is_file(artifact: Artifact) -> bool:
    return artifact.uri is not None and artifact.mime != STORED_VALUE
