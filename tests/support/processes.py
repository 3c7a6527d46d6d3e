"""The processes of the run: a store, role processes that are started again when they end, and faults in all of them."""

from __future__ import annotations

import random
import signal
import socket
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import psutil

from tests.support.fleet import environment, with_signal

SKEWS = ("+7m", "-7m", "+90m")
LIBRARIES = (Path("/usr/lib/x86_64-linux-gnu/faketime"), Path("/usr/lib/aarch64-linux-gnu/faketime"))


def skew_library() -> Path | None:
    """Return the library that shifts the clock of a process, from the Debian package ``faketime``, if installed."""
    found = [folder / "libfaketime.so.1" for folder in LIBRARIES if (folder / "libfaketime.so.1").is_file()]
    return found[0] if found else None


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
    running: psutil.Popen | None = None

    def ensure(self, root: Path) -> bool:
        """Start it unless it runs. Returns True if it was started."""
        if self.running is not None and self.running.poll() is None:
            return False
        with self.log.open("ab") as log:
            self.running = psutil.Popen(
                [sys.executable, "-m", "fireswarm.cli", *self.arguments],
                cwd=root,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return True

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal. Returns False if the process has ended."""
        return self.running is not None and self.running.poll() is None and with_signal(self.running, number)


@dataclass(slots=True)
class Processes:
    """The store and the role processes, and a count of what was done to them. *host*: a store that is not ours."""

    root: Path
    rng: random.Random
    host: str | None
    roles: dict[str, int]
    counts: Counter[str] = field(default_factory=Counter[str])
    store: Process | None = None
    agents: list[Process] = field(default_factory=list[Process])
    stopped: Process | None = None

    def start(self) -> str:
        """Start everything and return the store's address."""
        env = environment() | {"GOOGLE_CLOUD_PROJECT": "chaos"}
        if self.host is None:
            port = free_port()
            self.host = f"127.0.0.1:{port}"
            arguments = ["store", "serve", "--port", str(port), "--data", str(self.root / "chaos.firelite")]
            self.store = Process("store", arguments, env, self.root / "store.log")
            self.store.ensure(self.root)
        library = skew_library()
        for role, replicas in self.roles.items():
            for number in range(replicas):
                own = env | {"FIRESTORE_EMULATOR_HOST": self.host}
                if number % 2 and library is not None:
                    own |= {
                        "LD_PRELOAD": str(library),
                        "FAKETIME": self.rng.choice(SKEWS),
                        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                        "NO_FAKE_STAT": "1",
                    }
                    self.counts["skewed_processes"] += 1
                self.agents.append(Process(role, ["role", role], own, self.root / f"{role}-{number}.log"))
        return self.host

    async def keep(self) -> None:
        """Start processes again, as Cloud Run does, until canceled."""
        while True:
            if self.store is not None:
                self.store.ensure(self.root)
            for agent in self.agents:
                self.counts["starts"] += agent.ensure(self.root)
            await anyio.sleep(0.3)  # as often as Cloud Run would: nothing is waited for

    async def break_things(self, every: float, stop_seconds: float) -> None:
        """Kill a role process, stop one for longer than a lease, and now and then kill the store, until canceled."""
        rounds = 0
        while True:
            await anyio.sleep(every)  # the rate of the faults
            rounds += 1
            self.counts["kills"] += self.rng.choice(self.agents).signal(signal.SIGKILL)
            if self.stopped is None and rounds % 3 == 0:
                self.stopped = self.rng.choice(self.agents)
                self.counts["stops"] += self.stopped.signal(signal.SIGSTOP)
            elif self.stopped is not None and rounds % 3 == max(1, int(stop_seconds / every)) % 3:
                self.stopped.signal(signal.SIGCONT)
                self.stopped = None
            if self.store is not None and rounds % 10 == 0:
                self.counts["store_kills"] += self.store.signal(signal.SIGKILL)

    def end(self) -> None:
        """End every process that was started here."""
        ours = [*self.agents, *([self.store] if self.store is not None else [])]
        for process in ours:
            process.signal(signal.SIGCONT)
            if process.running is not None:
                family = _family(process.running.pid)
                process.signal(signal.SIGKILL)
                for member in family:
                    with_signal(member, signal.SIGKILL)
                process.running.wait()


def _family(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
