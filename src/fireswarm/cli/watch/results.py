"""Print the results of an objective: the paths of its files, and the content of a short list or summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fireswarm.cli.shared.options import console
from fireswarm.cli.watch.answer import print_answer
from fireswarm.client import Swarm
from fireswarm.contracts.base import command_line, count_noun
from fireswarm.contracts.skills.artifact import ANSWER, PIPELINE_FILE, STORED_VALUE, Artifact
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import FireswarmError

SHOWN = ("checklist", "keyword_list", "content_summary")
"""Types of Markdown artifacts whose content is printed, since they are the answer."""

MAIN = ("report", *SHOWN, "keyword_hits", "chart")
"""Types of artifacts whose paths are printed for every task, the most complete first."""

STEPS = frozenset({PIPELINE_FILE, "inventory", ANSWER})
"""Types of artifacts that the objective's own task may have, but that are not for reading."""

MAX_LINES = 40
MAX_PATHS = 20


async def print_results(swarm: Swarm, root: Task, tasks: Sequence[Task]) -> None:
    """Print the lists of the objective *root*, then the paths of its files. *tasks* are all tasks of the objective."""
    files = {artifact.uri: artifact for artifact in _main_files(root, tasks) if artifact.uri is not None}
    ordered = sorted(files.values(), key=lambda artifact: _rank(artifact.type))
    for artifact in ordered:
        if artifact.type in SHOWN:
            await _print_content(swarm, artifact)
    for artifact in ordered[:MAX_PATHS]:
        place = swarm.parts.blobs.locate(artifact.uri or "").removeprefix("file://")
        console.print(f"{artifact.type}: {place}", soft_wrap=True, markup=False)
    if (more := len(ordered) - MAX_PATHS) > 0:
        console.print(
            f"{count_noun(more, 'further file')}: `{command_line('swarm', 'artifacts', root.task_id)}` copies all",
            soft_wrap=True,
        )


def _main_files(root: Task, tasks: Sequence[Task]) -> Iterator[Artifact]:
    for task in (root, *tasks):
        for artifact in task.result.artifacts if task.result else ():
            own = task.task_id == root.task_id and artifact.type not in STEPS
            if artifact.mime != STORED_VALUE and (own or artifact.type in MAIN):
                yield artifact


def _rank(kind: str) -> int:
    return MAIN.index(kind) if kind in MAIN else len(MAIN)


async def _print_content(swarm: Swarm, artifact: Artifact) -> None:
    """Print the beginning of a text; print nothing if it is unreadable."""
    try:
        lines = (await swarm.parts.blobs.get(artifact.uri or "")).decode("utf-8", "replace").splitlines()
    except FireswarmError:
        return
    print_answer("\n".join(lines[:MAX_LINES]), console)
    if (more := len(lines) - MAX_LINES) > 0:
        console.print(f"[{count_noun(more, 'further line')} in the file]", style="dim", markup=False)
