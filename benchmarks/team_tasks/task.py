"""An objective for an agent and for a team: ``tasks/<name>/`` as in agent_tasks, with one recording for both ways."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from benchmarks.agent_tasks.task import BenchTask, TaskFile, names_of_tasks, read_task_file
from benchmarks.team_tasks.materials import MATERIALS
from fireswarm.errors import ConfigError

HERE = Path(__file__).resolve().parent
TASKS = HERE / "tasks"


class TeamFile(TaskFile):
    """The content of ``task.yaml``: besides that of a task for an agent, how its parts hang together."""

    parts: Literal["independent", "dependent"]
    follows: str = ""
    """Another task, whose objective comes first and whose project is used; ``then`` is this one's objective."""


@dataclass(frozen=True, slots=True)
class TeamTask(BenchTask):
    """An objective and its folder."""

    file: TeamFile

    @property
    def project(self) -> Path:
        return (self.folder.parent / self.file.follows if self.file.follows else self.folder) / "project"

    @property
    def materials(self) -> Mapping[str, Callable[[Path], None]]:
        return MATERIALS

    @property
    def recording(self) -> Path:
        return self.folder / "recording.yaml"


def load_team_tasks(names: Sequence[str] = (), folder: Path = TASKS) -> list[TeamTask]:
    """Load the named tasks, or all of them. Raises InvalidInput for an unknown name and ConfigError."""
    return [load_team_task(folder / name) for name in names_of_tasks(names, folder)]


def load_team_task(folder: Path) -> TeamTask:
    """Load a task; a follow-up has the objective of the task that it follows. Raises ConfigError with the fault."""
    path = folder / "task.yaml"
    content = read_task_file(path, TeamFile)
    if content.follows:
        if not content.then:
            raise ConfigError(f"{path}: a task that follows another says what follows in `then`")
        first = read_task_file(folder.parent / content.follows / "task.yaml", TeamFile)
        content = content.model_copy(update={"objective": first.objective, "prepare": first.prepare})
    return TeamTask(folder, content)


def recorded_answers(task: TeamTask) -> dict[str, Any]:
    """Return a task's recording: that of the task that it follows goes on with further answers.

    Raises ConfigError for a file that cannot be read.
    """
    own = _read_recording(task.recording)
    if not task.file.follows:
        return own
    before = _read_recording(task.folder.parent / task.file.follows / "recording.yaml")
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for each in (*before["conversations"], *own["conversations"]):
        key = (str(each["role"]), str(each.get("told", "")))
        earlier = found.get(key, {**each, "answers": []})
        found[key] = {**earlier, "answers": [*earlier["answers"], *each["answers"]]}
    return {"conversations": list(found.values())}


def _read_recording(path: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    return content
