"""Run a skill's entry where it can write to its own folder only, for a read_only task.

The process is new for each call. It is answered in JSON, since reading a pickle could run code of the skill here. A
program that the skill wants to run confined cannot be started inside of its confinement, so this process starts it.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import anyio
import anyio.to_process
import anyio.to_thread
from pydantic import AfterValidator, Base64Bytes, Field, ValidationError

from fireswarm.contracts.base import Contract, explain_validation
from fireswarm.contracts.limits import MAX_DETAIL_CHARS, truncate
from fireswarm.errors import SandboxRefused, SkillFailed
from fireswarm.processes.confinement.confined import run_confined
from fireswarm.processes.confinement.read_only import confine_writes
from fireswarm.processes.confinement.view import View
from fireswarm.processes.descendants import Descendants
from fireswarm.processes.messages import read_message, write_message

MAX_ANSWER_BYTES = 64_000_000
"""A longer message of the skill's process is refused."""

CHILD = "fireswarm.skills.running.confined_child"


def _check_path(path: str) -> str:
    if not path or "\0" in path or PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
        raise ValueError("expected a path within the workspace")
    return path


FilePath = Annotated[str, AfterValidator(_check_path)]


class Program(Contract):
    """A program that the skill wants to run confined, and its files.

    The files are sent, since the skill could replace one of its folders by a link while it is being mounted. They are
    in base64, by their paths in ``workspace``; in the command and the environment, ``workspace`` stands for the folder
    that they are written to here. ``seconds`` limits the time.
    """

    command: tuple[str, ...] = Field(min_length=1)
    workspace: str = Field(min_length=2)
    files: dict[FilePath, Base64Bytes]
    writable: bool
    readable: tuple[Path, ...] = ()
    environment: dict[str, str] = Field(default_factory=dict[str, str])
    seconds: float = Field(gt=0, le=86_400)


@dataclass(slots=True)
class ConfinedEntry:
    """One call of a skill's entry. ``call`` are the arguments of `in_child.run_entry`, all of them JSON."""

    workdir: Path
    call: tuple[Any, ...]
    _own: Descendants = field(default_factory=Descendants)
    _process: subprocess.Popen[bytes] | None = None
    _ended: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> tuple[bool, str] | None:
        """Run it and block until it ends; returns what `in_child.run_entry` returns.

        Raises SandboxRefused if it cannot be confined here, and SkillFailed if the process dies or breaks the protocol.
        """
        with tempfile.TemporaryDirectory(prefix="fireswarm-skill-", ignore_cleanup_errors=True) as temporary:
            folders = (Path(temporary).resolve(), self.workdir.resolve())
            with confine_writes(folders, self._own.environment()) as launch, self._lock:
                if self._ended:
                    raise SkillFailed("the call was ended before it started")
                self._process = subprocess.Popen(
                    [*launch.prefix, sys.executable, "-u", "-c", _program()],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env=launch.environment,
                    pass_fds=launch.pass_fds,
                    start_new_session=True,
                )
            try:
                return self._converse(self._process)
            finally:
                self.end()
                for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
                    if pipe is not None:
                        with contextlib.suppress(OSError):  # words that it did not read
                            pipe.close()

    def end(self) -> None:
        """Kill the process and all that it started; a call that has not started will not start."""
        with self._lock:
            self._ended = True
            process = self._process
        if process is None:
            return
        process.kill()  # its first child is the init of its namespace, so the kernel ends everything in there
        self._own.kill_all()
        process.wait()

    def _converse(self, process: subprocess.Popen[bytes]) -> tuple[bool, str] | None:
        requests, answers = process.stdin, process.stdout
        assert requests is not None and answers is not None and process.stderr is not None
        started = False
        try:
            write_message(requests, json.dumps(self.call).encode())
            while True:
                message = json.loads(read_message(answers, limit=MAX_ANSWER_BYTES))
                started = True
                if "answer" in message:
                    return _answer(message["answer"])
                if "run" in message:
                    write_message(requests, json.dumps(_run(message["run"], lambda: self._ended)).encode())
        except (EOFError, OSError) as error:
            if started:
                raise SkillFailed("ended its process before it answered") from error
            process.kill()
            told = process.stderr.read(MAX_DETAIL_CHARS * 4).decode("utf-8", "replace").strip()
            raise SandboxRefused(truncate(told, MAX_DETAIL_CHARS) or "its process ended at once") from error
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise SkillFailed(f"sent an invalid message from its process: {error}") from error


def _program() -> str:
    return f"import sys; sys.path[:] = {sys.path!r}; from {CHILD} import main; main()"


def _answer(answer: Any) -> tuple[bool, str] | None:
    match answer:
        case None:
            return None
        case [bool() as ok, str() as text]:
            return ok, text
        case _:
            raise ValueError("expected true or false, and a text")


def _run(asked: Any, has_ended: Callable[[], bool]) -> dict[str, Any]:
    """Run a program for the skill, in a new folder with the files that it sent, until it or the call has ended."""
    try:
        program = Program.model_validate(asked)
    except ValidationError as error:
        return {"refused": explain_validation(error)}
    with tempfile.TemporaryDirectory(prefix="fireswarm-program-", ignore_cleanup_errors=True) as folder:
        workspace = Path(folder).resolve() / "workspace"
        try:
            workspace.mkdir()
            for path, content in program.files.items():
                (workspace / path).parent.mkdir(parents=True, exist_ok=True)
                (workspace / path).write_bytes(content)
            command = [word.replace(program.workspace, str(workspace)) for word in program.command]
            environment = {
                name: value.replace(program.workspace, str(workspace)) for name, value in program.environment.items()
            }
            view = View(workspace, program.writable, program.readable)
            code, output = run_confined(command, view, environment, program.seconds, has_ended=has_ended)
        except (SandboxRefused, OSError, ValueError) as error:
            return {"refused": str(error)}
        return {"code": code, "output": output.replace(str(workspace), program.workspace)}


async def run_entry_confined(
    workdir: Path, *call: Any, limiter: anyio.CapacityLimiter | None = None
) -> tuple[bool, str] | None:
    """Run a skill's entry confined. Cancelling the call ends its process; *limiter* limits concurrent ones.

    Raises SandboxRefused and SkillFailed.
    """
    entry = ConfinedEntry(workdir, call)
    async with limiter or anyio.to_process.current_default_process_limiter():
        try:
            return await anyio.to_thread.run_sync(entry.run, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1))
        except BaseException:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(entry.end, limiter=anyio.CapacityLimiter(1))
            raise
