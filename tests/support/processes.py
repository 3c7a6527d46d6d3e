"""The processes of the run: a store, fleets whose role processes are started again when they end, and faults in all."""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import psutil

from fireswarm.processes.confinement.control_group import MOUNT, PREFIX
from tests.support.fleet import environment, role_processes, with_signal

SKEWS = ("+7m", "-7m", "+90m")
ENDED = re.compile(r" ended with exit code (-?\d+) (.*)")
INJECTED = Path(__file__).parents[1] / "chaos" / "at_size" / "injected"
FAILED = "failed-commits"
"""File with a byte for each commit that was made to fail."""

MARK = "CHAOS_RUN"
"""Variable of every process that was started here, and of those that it starts."""

NO_STORE = "(store_unavailable)"
LIBRARIES = (Path("/usr/lib/x86_64-linux-gnu/faketime"), Path("/usr/lib/aarch64-linux-gnu/faketime"))


def skew_library() -> Path | None:
    """Return the library that shifts the clock of a process, from the Debian package ``faketime``, if installed."""
    found = [folder / "libfaketime.so.1" for folder in LIBRARIES if (folder / "libfaketime.so.1").is_file()]
    return found[0] if found else None


def skewed(library: Path, skew: str) -> dict[str, str]:
    """Return the environment of a process whose clock is off by *skew*, such as ``+7m``; its steady clock is not."""
    return {"LD_PRELOAD": str(library), "FAKETIME": skew, "FAKETIME_DONT_FAKE_MONOTONIC": "1", "NO_FAKE_STAT": "1"}


def free_port() -> int:
    """Return a port of loopback that is free now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


async def reachable(host: str) -> bool:
    """Return True if a server listens there."""
    name, _, port = host.rpartition(":")
    try:
        async with await anyio.connect_tcp(name, int(port)):
            return True
    except OSError:
        return False


@dataclass(slots=True)
class Process:
    """One process that is started again whenever it has ended."""

    name: str
    arguments: list[str]
    env: dict[str, str]
    log: Path
    folder: Path
    running: psutil.Popen | None = None

    def ensure(self) -> bool:
        """Start it unless it runs. Returns True if it was started."""
        if self.running is not None and self.running.poll() is None:
            return False
        with self.log.open("ab") as log:
            self.running = psutil.Popen(
                [sys.executable, "-m", "fireswarm.cli", *self.arguments],
                cwd=self.folder,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return True

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal. Returns False if the process has ended."""
        return self.running is not None and self.running.poll() is None and with_signal(self.running, number)

    def roles(self) -> list[psutil.Process]:
        """Return the role processes that it runs now, if it is a fleet."""
        return role_processes(self.running) if self.running is not None and self.running.poll() is None else []


@dataclass(slots=True)
class Processes:
    """The store and fleets (``swarm up``), and a count of what was done to them. *host*: a store that is not ours.

    One fleet has one process of each role; more of them are in fleets with shifted clocks. Another fleet, in the folder
    *newer*, is of a newer version. *commit_faults* is the share of their commits that fail.
    """

    root: Path
    rng: random.Random
    host: str | None
    roles: dict[str, int]
    newer: Path | None = None
    project: str = "chaos"
    commit_faults: float = 0.0
    counts: Counter[str] = field(default_factory=Counter[str])
    store: Process | None = None
    fleets: list[Process] = field(default_factory=list[Process])
    stopped: psutil.Process | None = None
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    def start(self) -> str:
        """Start everything and return the store's address."""
        env = environment() | {"GOOGLE_CLOUD_PROJECT": self.project, MARK: self.mark}
        if self.host is None:
            port = free_port()
            self.host = f"127.0.0.1:{port}"
            arguments = ["store", "serve", "--port", str(port), "--data", str(self.root / "chaos.firelite")]
            self.store = Process("store", arguments, env, self.root / "store.log", self.root)
            self.store.ensure()
        env |= {"FIRESTORE_EMULATOR_HOST": self.host, "PYTHONPATH": str(INJECTED)}
        env |= {"CHAOS_FAULTS": f"{self.commit_faults}:{self.root / FAILED}"}
        library = skew_library()
        more = {role: replicas - 1 for role, replicas in self.roles.items() if replicas > 1}
        self._add_fleet("fleet", dict.fromkeys(self.roles, 1) if library else self.roles, env)
        if library is not None:
            for number, skew in enumerate(SKEWS):
                shifted = {role: more[role] for role in sorted(more)[number :: len(SKEWS)]}
                self._add_fleet(f"fleet{skew}", shifted, env | skewed(library, skew))
                self.counts["skewed_processes"] += sum(shifted.values())
        if self.newer is not None:
            self._add_fleet("newer", dict.fromkeys(self.roles, 1), env | {"CHAOS_NEWER": "1"}, self.newer)
        return self.host

    def _add_fleet(self, name: str, roles: Mapping[str, int], env: dict[str, str], folder: Path | None = None) -> None:
        if roles:
            replicas = [f"--replicas={role}={count}" for role, count in roles.items()]
            arguments = ["up", "--roles", ",".join(roles), *replicas]
            self.fleets.append(Process(name, arguments, env, self.root / f"{name}.log", folder or self.root))

    def unexpected_ends(self) -> int:
        """Return how many role processes ended by themselves, as the fleets reported.

        Without a store, a role process cannot start.
        """
        told = "".join(fleet.log.read_text() for fleet in self.fleets if fleet.log.exists())
        return sum(int(code) >= 0 and NO_STORE not in rest for code, rest in ENDED.findall(told))

    def failed_commits(self) -> int:
        """Return how many commits were made to fail."""
        counted = self.root / FAILED
        return counted.stat().st_size if counted.exists() else 0

    async def keep(self) -> None:
        """Start processes again, as Cloud Run does, until canceled."""
        while True:
            if self.store is not None:
                self.store.ensure()
            for fleet in self.fleets:
                self.counts["fleet_starts"] += fleet.ensure()
            await anyio.sleep(0.3)  # as often as Cloud Run would: nothing is waited for

    async def suspend_all(self, every: float, seconds: float) -> None:
        """Stop the store and all fleets at once for some time, as a laptop's sleep does, until canceled."""
        while True:
            await anyio.sleep(every)  # the rate of the faults
            self._signal_all(signal.SIGSTOP)
            self.counts["suspends"] += 1
            await anyio.sleep(seconds)  # the length of the sleep
            self.resume()

    def resume(self) -> None:
        """Let everything run that was stopped."""
        self._signal_all(signal.SIGCONT)
        for orphan in self._orphans():
            with_signal(orphan, signal.SIGCONT)

    def _signal_all(self, number: signal.Signals) -> None:
        for process in self._ours():
            if process.running is not None:
                for member in [*_family(process.running.pid)]:
                    with_signal(member, number)
                process.signal(number)

    def _ours(self) -> list[Process]:
        return [*self.fleets, *([self.store] if self.store is not None else [])]

    async def break_things(self, every: float, stop_seconds: float) -> None:
        """Kill a role process, stop one for longer than a lease, kill the store or a fleet, until canceled."""
        rounds = 0
        while True:
            await anyio.sleep(every)  # the rate of the faults
            rounds += 1
            running = [process for fleet in self.fleets for process in fleet.roles()]
            self.counts["kills"] += self._signal_one(running, signal.SIGKILL) is not None
            if self.stopped is None and rounds % 3 == 0:
                self.stopped = self._signal_one(running, signal.SIGSTOP)
                self.counts["stops"] += self.stopped is not None
            elif self.stopped is not None and rounds % 3 == max(1, int(stop_seconds / every)) % 3:
                with_signal(self.stopped, signal.SIGCONT)
                self.stopped = None
            if rounds % 30 == 15:  # its role processes drain and end, and it is started again
                self.counts["fleet_kills"] += self.rng.choice(self.fleets).signal(signal.SIGKILL)
            if self.store is not None and rounds % 10 == 0:
                self.counts["store_kills"] += self.store.signal(signal.SIGKILL)

    def _signal_one(self, processes: list[psutil.Process], number: signal.Signals) -> psutil.Process | None:
        """Signal a random process and return it, or None if there is none."""
        chosen = self.rng.choice(processes) if processes else None
        return chosen if chosen is not None and with_signal(chosen, number) else None

    def end(self) -> None:
        """End every process that was started here; ``left_running`` counts those that did not end."""
        for process in self._ours():
            if process.running is not None:
                family = _family(process.running.pid)
                process.signal(signal.SIGKILL)
                for member in family:
                    with_signal(member, signal.SIGKILL)
                process.running.wait()
        orphans = self._orphans()
        for orphan in orphans:
            with_signal(orphan, signal.SIGKILL)
        self.counts["left_running"] = len(psutil.wait_procs(orphans, timeout=30)[1])

    def _orphans(self) -> list[psutil.Process]:
        """Return the processes of fleets that were killed: one that stood still did not see its fleet end."""
        ours = {process.running.pid for process in self._ours() if process.running is not None}
        return [process for process in psutil.process_iter() if process.pid not in ours and self._is_marked(process)]

    def _is_marked(self, process: psutil.Process) -> bool:
        try:
            return process.environ().get(MARK) == self.mark
        except psutil.Error:
            return False


def _family(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def own_control_groups() -> set[Path]:
    """Return the folders of the control groups that this process made; an earlier test's may wait for the kernel."""
    return set(MOUNT.rglob(f"{PREFIX}{os.getpid()}-*"))
