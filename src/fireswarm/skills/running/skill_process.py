"""Run a skill's entry in a process that can write only to its own folders.

The process answers in JSON, since reading a pickle could run code of the skill here. A program that the skill wants to
run confined cannot start inside of the skill's confinement, so this process starts it.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, Base64Bytes, Field, TypeAdapter, ValidationError

from fireswarm.contracts.base import Contract, explain_validation
from fireswarm.contracts.limits import MAX_DETAIL_CHARS, truncate
from fireswarm.contracts.regular_file import read_regular_file
from fireswarm.errors import PlaceRefused, SandboxRefused, SkillFailed
from fireswarm.processes.child_pool import ends_folder
from fireswarm.processes.confinement.paths.late_names import LateNames
from fireswarm.processes.confinement.skill_view import SkillView
from fireswarm.processes.confinement.view import View
from fireswarm.processes.messages import import_folders, read_message, write_message
from fireswarm.processes.run import LIMITS, Confined, Program, run_confined

MAX_ANSWER_BYTES = 64_000_000
"""Maximum size of a message from the skill's process, and of the files that a program leaves for it."""

MAX_FILES_LEFT = 1_000
"""So many files that a program leaves are given to the skill."""

GONE = "bwrap: Can't find source path"
"""What bubblewrap says of a place that was replaced or removed since it was opened."""

CHILD = "fireswarm.skills.running.confined_child"


def _check_path(path: str) -> str:
    if not path or "\0" in path or PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
        raise ValueError("expected a path within the workspace")
    return path


FilePath = Annotated[str, AfterValidator(_check_path)]

FILE_PATH = TypeAdapter[str](FilePath)


class WantedProgram(Contract):
    """A program that the skill wants to run confined, and its files.

    The files are sent by value, since the skill could replace a folder by a link while it is being mounted. They are in
    base64, by their paths in ``workspace``; in the command and the environment, ``workspace`` stands for the folder
    here to which they are written. ``seconds`` is the time limit.
    """

    command: tuple[str, ...] = Field(min_length=1)
    workspace: str = Field(min_length=2)
    files: dict[FilePath, Base64Bytes]
    writable: bool
    readable: tuple[Path, ...] = ()
    environment: dict[str, str] = Field(default_factory=dict[str, str])
    seconds: float = Field(gt=0, le=86_400)


@dataclass(frozen=True, slots=True)
class Reach:
    """What a skill's code can read and write to, and ``network`` if it has one.

    It writes to ``workdir``, and to the ``workspaces`` if it ``writes``; it reads ``readable``, which are real paths:
    one of which a part has become a link is refused when the process starts. ``hidden`` files and
    folders are not shown. ``passed`` are names of environment variables that it gets besides the usual ones.
    """

    workdir: Path
    workspaces: tuple[Path, ...] = ()
    writes: bool = False
    readable: tuple[Path, ...] = ()
    network: bool = False
    passed: tuple[str, ...] = ()
    confinement: str = "auto"
    hidden: tuple[Path, ...] = ()


class ConfinedProcess:
    """A process for the entries of skills. A message to it has the arguments of `in_child.run_entry` as JSON.

    Raises SandboxRefused if it cannot be confined here.
    """

    def __init__(self, reach: Reach) -> None:
        self.idle_since = 0.0
        self._confinement = reach.confinement
        self._hidden = reach.hidden
        workdir = reach.workdir.resolve()
        self._has_answered = False
        self._ended = threading.Event()
        self._exceeded = ""
        with ExitStack() as stack:
            home = tempfile.TemporaryDirectory(prefix="fireswarm-skill-", ignore_cleanup_errors=True)
            private = Path(stack.enter_context(home)).resolve()
            changing = [workdir, *(folder.resolve() for folder in reach.workspaces if reach.writes)]
            self._fixed = [place for place in reach.readable if not any(map(place.is_relative_to, changing))]
            self._view = SkillView(
                private,
                workdir,
                reach.workspaces,
                reach.writes,
                (*reach.readable, ends_folder().resolve()),
                reach.network,
                reach.passed,
                reach.confinement,
                reach.hidden,
            )
            program = Program((sys.executable, "-u", "-c", _program()), workdir)
            late = LateNames([each.resolve() for each in reach.workspaces] if reach.writes else [], program.own.mark)
            stack.callback(late.set_aside)
            self._confined = Confined.start(program, self._view, LIMITS)
            self._at_end = stack.pop_all()
        self._process = self._confined.process

    @property
    def alive(self) -> bool:
        """True until the process has ended."""
        return self._process.poll() is None

    def call(self, message: tuple[Any, ...]) -> tuple[bool, str] | None:
        """Run an entry and block until it ends; returns the result of `in_child.run_entry`.

        Raises SandboxRefused if the process cannot be confined here, EOFError or OSError if it dies, and SkillFailed if
        it breaks the protocol or exceeds `LIMITS`.
        """
        answered = threading.Event()
        watch = threading.Thread(target=self._watch, args=(answered,), daemon=True)
        watch.start()
        try:
            return self._converse(message)
        finally:
            answered.set()
            watch.join()

    def kill(self) -> None:
        """Kill the process and its child processes."""
        self._ended.set()
        self._confined.kill()
        self._at_end.close()

    def _watch(self, answered: threading.Event) -> None:
        if excess := self._confined.watch(answered):
            self._exceeded = excess.reason
            self._process.kill()

    def _converse(self, call: tuple[Any, ...]) -> tuple[bool, str] | None:
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None and answers is not None and self._process.stderr is not None
        try:
            write_message(requests, json.dumps(call).encode())
            while True:
                message = json.loads(read_message(answers, limit=MAX_ANSWER_BYTES))
                self._has_answered = True
                if "answer" in message:
                    return _answer(message["answer"])
                if "run" in message:
                    write_message(requests, json.dumps(self._run(message["run"])).encode())
        except (EOFError, OSError) as error:
            lost = self._confined.lost
            if reason := self._exceeded or (lost.reason if lost else ""):
                raise SkillFailed(f"was killed: {reason}") from error
            if self._has_answered:
                raise
            self._process.kill()
            told = self._process.stderr.read(MAX_DETAIL_CHARS * 4).decode("utf-8", "replace").strip()
            if not told:  # a sandbox that does not work says why: this process was killed
                raise
            refused = PlaceRefused if told.startswith(GONE) else SandboxRefused
            raise refused(truncate(told, MAX_DETAIL_CHARS)) from error
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise SkillFailed(f"sent an invalid message from its process: {error}") from error

    def _run(self, asked: Any) -> dict[str, Any]:
        """Run a program for the skill, in a new folder with the sent files, until the program or the call has ended."""
        try:
            program = WantedProgram.model_validate(asked)
        except ValidationError as error:
            return {"refused": explain_validation(error)}
        with tempfile.TemporaryDirectory(prefix="fireswarm-program-", ignore_cleanup_errors=True) as folder:
            workspace = Path(folder).resolve() / "workspace"
            try:
                readable = self._readable_by(program)
                workspace.mkdir()
                for path, content in program.files.items():
                    (workspace / path).parent.mkdir(parents=True, exist_ok=True)
                    (workspace / path).write_bytes(content)
                command = [word.replace(program.workspace, str(workspace)) for word in program.command]
                known = os.environ.get("PATH", os.defpath).split(os.pathsep)
                path = [folder for folder in program.environment.get("PATH", "").split(os.pathsep) if folder in known]
                given = {**program.environment, "PATH": os.pathsep.join(path)}
                environment = {name: value.replace(program.workspace, str(workspace)) for name, value in given.items()}
                view = View(workspace, program.writable, readable, protects=False, hidden=self._hidden, follow=False)
                code, output = run_confined(
                    command,
                    view,
                    environment,
                    program.seconds,
                    confinement=self._confinement,
                    has_ended=self._ended.is_set,
                )
            except (SandboxRefused, OSError, ValueError) as error:
                return {"refused": str(error)}
            left = _files_left(workspace, program.files) if program.writable else {}
            return {"code": code, "output": output.replace(str(workspace), program.workspace), "files": left}

    def _readable_by(self, program: WantedProgram) -> tuple[Path, ...]:
        """Return the real paths of the places for which the skill asks.

        Raises SandboxRefused for one that it can change, or that it cannot read itself.
        """
        seen = (*self._fixed, Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve())
        places = [(place, place.resolve()) for place in program.readable]
        for place, real in places:
            if not place.is_absolute() or not any(real.is_relative_to(known) for known in seen):
                raise SandboxRefused(f"a skill does not let programs read {place}: only packages and its own folder")
        return tuple(real for _, real in places)


def _files_left(workspace: Path, given: Mapping[str, bytes]) -> dict[str, str]:
    """Return in base64 what a program that has ended wrote, as far as it fits. Links are not followed."""
    left: dict[str, str] = {}
    room = MAX_ANSWER_BYTES
    for folder, folders, names in os.walk(workspace):
        folders.sort()
        for path in (Path(folder, name) for name in sorted(names)):
            try:
                content = read_regular_file(path, room, follow=False)
                name = FILE_PATH.validate_python(str(path.relative_to(workspace)))
            except (OSError, ValueError):
                continue  # a link, a pipe, a file that does not fit, or a name that is no path of a file
            if given.get(name) != content and len(left) < MAX_FILES_LEFT:
                left[name] = base64.b64encode(content).decode()
                room -= len(content)
    return left


def _program() -> str:
    return f"import sys; sys.path[:] = {import_folders()!r}; from {CHILD} import main; main()"


def _answer(answer: Any) -> tuple[bool, str] | None:
    match answer:
        case None:
            return None
        case [bool() as ok, str() as text]:
            return ok, text
        case _:
            raise ValueError("expected true or false, and a string")
