"""Role processes on one machine: start them, restart those that die, stop all of them in order."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL

import anyio
from anyio.abc import Process, TaskGroup

from fireswarm.processes.forked import Command, ForkedProcess, start_forked
from fireswarm.processes.startup import OWN_MODULE, require_threads, why_exhausted
from fireswarm.settings.run_folders import make_state_folder
from fireswarm.swarm.records.orders import DRAINED_EXIT, PLACE, new_fleet, new_place
from fireswarm.swarm.worker.heartbeat import RESTARTED

PROGRAM, PRELOAD = "fireswarm.cli", "fireswarm.cli.preload"
"""Module of the command line, and the module that imports everything a role process needs."""

RESTART_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Pauses before a dead process is restarted; they grow while it keeps dying early."""

STEADY_SECONDS = 10.0
"""Lifetime after which a process counts as healthy: the pauses then start again with the shortest."""

REPORTED = (0, 1, 2, 3, 10)
"""Numbers of consecutive failures that are reported, then every tenth; 0 is a process that was healthy before."""

OWN_THREADS, ROLE_THREADS = 12, 12
"""Processes and threads of the supervisor with its store, and of one role process, as measured on Linux."""

LOG_TAIL_BYTES = 4_096

GRACE_SECONDS = 2.5
"""Time in addition to a role's drain time before its process is killed: to release tasks and export the last spans."""


PARENT = "FIRESWARM_PARENT"
"""Environment variable with the supervisor's process id.

A role process cannot ask the system later, since it may have a new parent by then.
"""

KILLED = "was killed by"


@dataclass(slots=True)
class RoleProcess:
    """One place in the fleet: its role and its current process.

    ``ended`` is how the last one ended, ``drained`` is True if an operator ordered that; ``log_start`` is the size of
    its log when the current one started.
    """

    role: str
    number: int
    process: Process | ForkedProcess | None = None
    restarts: int = 0
    exit_code: int | None = None
    ended: str = ""
    drained: bool = False
    log_start: int = 0

    @property
    def pid(self) -> int | None:
        """Process id; None before the first start."""
        return None if self.process is None else self.process.pid


@dataclass(slots=True)
class Supervisor:
    """Keeps one process running for every place. Logs go to ``<logs>/<role>-<number>.log``.

    With ``forks``, processes start as copies of one process, which only Linux does safely.
    """

    places: list[RoleProcess]
    arguments: Sequence[str]
    environment: Mapping[str, str]
    logs: Path
    drain_seconds: float
    report: Callable[[str], None] = lambda _: None
    forks: bool = sys.platform == "linux"
    stopping: bool = False
    fleet: str = field(default_factory=new_fleet)
    _group: TaskGroup | None = field(default=None, repr=False)

    @classmethod
    def plan(
        cls,
        replicas: Mapping[str, int],
        *,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        logs: Path,
        drain_seconds: float,
    ) -> Supervisor:
        """Plan a fleet with *replicas* processes for each role; all get *arguments* for ``swarm role``."""
        places = [RoleProcess(role, number) for role, count in replicas.items() for number in range(1, count + 1)]
        return cls(places, arguments, environment, logs, drain_seconds)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator[Supervisor]:
        """Run the fleet inside the block. On exit, drain every process and kill those that remain."""
        make_state_folder(self.logs)
        require_threads(OWN_THREADS + ROLE_THREADS * len(self.places))
        try:
            async with anyio.create_task_group() as group:
                for place in self.places:
                    group.start_soon(self._keep, place)
                try:
                    yield self
                finally:
                    with anyio.CancelScope(shield=True):
                        await self.stop()
                    group.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await self.stop()  # a start may have been in progress

    async def stop(self) -> None:
        """Ask every process to drain, wait up to the drain time plus GRACE_SECONDS, then kill."""
        self.stopping = True
        alive = [place.process for place in self.places if place.process and place.process.returncode is None]
        for process in alive:
            _signal(process, signal.SIGTERM)
        with anyio.move_on_after(self.drain_seconds + GRACE_SECONDS):
            for process in alive:
                await process.wait()
        for process in alive:
            if process.returncode is None:
                _signal(process, signal.SIGKILL)
                await process.wait()

    async def _keep(self, place: RoleProcess) -> None:
        """Start the process of a place, and restart it whenever it dies, until the supervisor stops."""
        failures = 0
        while not self.stopping:
            started = anyio.current_time()
            try:
                place.process = await self._start(place)
                if self.stopping:
                    _signal(place.process, signal.SIGTERM)
                place.exit_code = await place.process.wait()
                ended = _name_end(place.exit_code)
            except (OSError, RuntimeError, MemoryError) as error:  # such as too many processes, or a full disk
                if not (reason := why_exhausted(error)) and not isinstance(error, OSError):
                    raise
                ended = f"cannot be started ({reason or error})"
            if self.stopping:
                return
            if place.exit_code == DRAINED_EXIT:
                place.drained = True
                self.report(f"{place.role}-{place.number} was drained by an operator: a new `swarm up` starts it again")
                return
            place.restarts += 1
            lived = anyio.current_time() - started
            failures = 0 if lived > STEADY_SECONDS else failures + 1
            pause = RESTART_SECONDS[min(failures, len(RESTART_SECONDS) - 1)]
            place.ended = self._describe_end(place, ended, lived, pause)
            if place.exit_code == 0:  # it was asked to stop; with Ctrl-C the whole fleet is
                await anyio.sleep(pause)
            if not self.stopping and (failures in REPORTED or failures % REPORTED[-1] == 0):
                self.report(place.ended)
            await anyio.sleep(pause)

    async def _start(self, place: RoleProcess) -> Process | ForkedProcess:
        """Start the process of a place: if possible, as a copy of a process that has imported everything."""
        arguments = ["role", place.role, "--with-parent", *self.arguments]
        name = f"{place.role}-{place.number}"
        own = {PARENT: str(os.getpid()), RESTARTED: place.ended, PLACE: new_place(self.fleet, name)}
        environment = {**os.environ, **self.environment, **own}
        path = self.logs / f"{name}.log"
        make_state_folder(self.logs)
        place.log_start = path.stat().st_size if path.exists() else 0
        if self.forks:
            return await start_forked(Command(name, f"{PROGRAM}:swarm_command", arguments, environment, path), PRELOAD)
        with path.open("ab") as log:
            command = [*OWN_MODULE, PROGRAM, *arguments]
            return await anyio.open_process(command, stdin=DEVNULL, stdout=log, stderr=log, env=environment)

    def _describe_end(self, place: RoleProcess, ended: str, lived: float, pause: float) -> str:
        """Log how a process ended, with the last line of its log."""
        log = self.logs / f"{place.role}-{place.number}.log"
        try:
            with log.open("rb") as file:
                file.seek(max(place.log_start, log.stat().st_size - LOG_TAIL_BYTES))
                lines = file.read().decode(errors="replace").split("\n")
        except OSError as error:
            lines = [f"its log cannot be read: {error.strerror}"]
        last = next((line.strip() for line in reversed(lines) if line.strip()), "it logged nothing")
        what = f"{place.role}-{place.number} {ended} after {lived:.1f} s (restart {place.restarts}, in {pause:g} s)"
        return f"{what}; its last log entry: {last}" if ended.startswith(KILLED) else f"{what}: {last}"


def _name_end(code: int) -> str:
    """Return how a process ended: the name of a signal, or its exit code."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"{KILLED} {signal.Signals(-code).name}"
    except ValueError:
        return f"{KILLED} signal {-code}"


def _signal(process: Process | ForkedProcess, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(number)
