"""A task of the benchmark: ``tasks/<name>/`` with ``task.yaml``, the project, the checks' files and a recording."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from benchmarks.agent_tasks.materials import MATERIALS
from fireswarm.contracts.base import explain_validation
from fireswarm.errors import ConfigError, InvalidInput

HERE = Path(__file__).resolve().parent
TASKS = HERE / "tasks"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _CheckPart(_Part):
    why: str = Field(min_length=10, description="what is wrong if the check fails, for the table")


class RunCheck(_CheckPart):
    """Run a command in a copy of the project, with files of ``hidden/<files>`` put over it, and those that it had."""

    kind: Literal["run"]
    command: str
    files: str | None = None
    delivered: str = Field(default="", description="folder of the copy into which the artifacts are put")
    restored: tuple[str, ...] = Field(default=(), description="files of the project as they were before the run")
    fails: bool = Field(default=False, description="the command has to fail")
    says: tuple[str, ...] = Field(default=(), description="patterns that its output must have")


class AnswerCheck(_CheckPart):
    """The answer has these patterns."""

    kind: Literal["answer"]
    has: tuple[str, ...] = Field(min_length=1)


class FileCheck(_CheckPart):
    """A file of the project, or an artifact, has these patterns; with a glob, at least one does."""

    kind: Literal["file"]
    path: str = Field(description="a path, or a glob")
    where: Literal["project", "outputs"] = "project"
    has: tuple[str, ...] = Field(min_length=1)
    max_words: int | None = None


class SameContentCheck(_CheckPart):
    """A file or artifact holds the same data as ``hidden/<expected>``: JSON and CSV are compared by their values."""

    kind: Literal["content"]
    path: str
    where: Literal["project", "outputs"] = "project"
    expected: str


class Citation(_Part):
    """A statement of a text, found by the pattern ``about``, cites a line that has the pattern ``line``."""

    about: str
    line: str


class EvidenceCheck(_CheckPart):
    """An artifact, or the answer if ``path`` is empty, gives evidence as ``file:line`` of the project.

    Each file and line that it names exists, and each statement of ``cites`` names a line that says so.
    """

    kind: Literal["evidence"]
    path: str = Field(default="", description="glob of an artifact; empty: the answer")
    cites: tuple[Citation, ...] = Field(min_length=1)


class UnchangedCheck(_CheckPart):
    """Files of the project are as they were; none was added or removed, but those that the globs name."""

    kind: Literal["unchanged"]
    but: tuple[str, ...] = ()


Check = Annotated[
    RunCheck | AnswerCheck | FileCheck | SameContentCheck | EvidenceCheck | UnchangedCheck,
    Field(discriminator="kind"),
]


class Reply(_Part):
    """What a person answers to a question that the pattern is found in."""

    question: str
    answer: str


class Limits(_Part):
    turns: int = Field(default=30, ge=1)
    seconds: float = Field(default=300, gt=0)


class TaskFile(_Part):
    """The content of ``task.yaml``."""

    about: str
    objective: str
    checks: tuple[Check, ...] = Field(min_length=1)
    prepare: str | None = Field(default=None, description="a function of materials.py that adds to the project")
    replies: tuple[Reply, ...] = ()
    then: str = Field(default="", description="what the person says to the first answer; only what follows is measured")
    limits: Limits = Limits()


@dataclass(frozen=True, slots=True)
class BenchTask:
    """A task and its folder."""

    folder: Path
    file: TaskFile

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def hidden(self) -> Path:
        """Files that the agent never sees; checks use them."""
        return self.folder / "hidden"

    @property
    def materials(self) -> Mapping[str, Callable[[Path], None]]:
        """What ``prepare`` may name."""
        return MATERIALS

    @property
    def recording(self) -> Path:
        return self.folder / "recording.json"


def load_task(folder: Path) -> BenchTask:
    """Load a task. Raises ConfigError with the fault."""
    return BenchTask(folder, read_task_file(folder / "task.yaml", TaskFile))


def read_task_file[F: TaskFile](path: Path, form: type[F]) -> F:
    """Read a ``task.yaml`` of this form. Raises ConfigError with the fault."""
    try:
        return form.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        raise ConfigError(f"{path}: {explain_validation(error)}") from error
    except (OSError, yaml.YAMLError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error


def load_tasks(names: Sequence[str] = (), folder: Path = TASKS) -> list[BenchTask]:
    """Load the named tasks, or all of them, in the order of their names. Raises InvalidInput for an unknown name."""
    return [load_task(folder / name) for name in names_of_tasks(names, folder)]


def names_of_tasks(names: Sequence[str], folder: Path) -> list[str]:
    """Return *names* in order, or those of all tasks of a folder. Raises InvalidInput for an unknown name."""
    known = sorted(path.parent.name for path in folder.glob("*/task.yaml"))
    if unknown := [name for name in names if name not in known]:
        raise InvalidInput(f"unknown task {', '.join(unknown)}; the tasks are {', '.join(known)}")
    if not known:
        raise InvalidInput(f"{folder} has no folders with a task.yaml")
    return [name for name in known if not names or name in names]
