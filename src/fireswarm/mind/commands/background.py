"""The background commands of a run. A resumed run does not restart them.

Starting and reading are recorded steps: a resumed run gives the model the same results.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from fireswarm.contracts.ports import Recorder
from fireswarm.errors import InvalidInput
from fireswarm.mind.calls.specs import COMMAND_OUTPUT, STOP_COMMAND
from fireswarm.processes.background.command import BackgroundCommand
from fireswarm.processes.confinement.view import View
from fireswarm.processes.run import CannotStart
from fireswarm.processes.shell import Shell

MAX_RUNNING = 8
"""Maximum number of background commands of a run at one time."""

LOST = "was lost when the run was interrupted. Start it again if you need it"


@dataclass(slots=True)
class BackgroundCommands:
    """The background commands of a run by their ids. ``longest_wait`` limits the wait for new output, in seconds."""

    shell: Shell
    recorder: Recorder
    longest_wait: float
    _live: dict[str, BackgroundCommand] = field(default_factory=dict)
    _all: list[BackgroundCommand] = field(default_factory=list)
    """Includes commands whose start was not recorded, so that their id was used again."""

    known: list[str] = field(default_factory=list)
    """Every command that this run started, also before an interruption."""

    _told: set[str] = field(default_factory=set)
    """Commands whose end was reported to the model."""

    async def start(self, line: str, cwd: Path, seconds: float, view: View | None) -> tuple[str, str]:
        """Start a command; returns its id and the text for the model. Raises CannotStart and SandboxRefused."""
        active = [each for each, command in self._live.items() if not command.ended.is_set()]
        if sum(not command.ended.is_set() for command in self._all) >= MAX_RUNNING:
            raise CannotStart(
                f"{len(active)} background commands are running ({', '.join(active)}), which is the maximum: end "
                f"one with {STOP_COMMAND}"
            )
        name = f"c{len(self.known) + 1}"
        self._live[name] = await BackgroundCommand.start(self.shell, line, cwd, seconds, view)
        self._all.append(self._live[name])
        network = "" if view is None or view.network else " Other commands cannot reach its ports."
        return name, (
            f"[started {name} in the background: read its output with {COMMAND_OUTPUT}, stop it with {STOP_COMMAND}. "
            f"It stops with this run, and after {seconds:,g} s at the latest.{network}]"
        )

    def note_started(self, name: str) -> None:
        """Record the id of a command that this run started, also before an interruption."""
        self.known.append(name)

    async def read(self, step: str, given: Mapping[str, Any]) -> str:
        """Return the new output and the state of a command. Raises InvalidInput."""
        name, wait = self._check_id(given), given.get("wait_seconds")
        wait = 0 if wait is None else wait
        if isinstance(wait, bool) or not isinstance(wait, (int, float)) or not wait >= 0:  # rejects NaN
            raise InvalidInput("wait_seconds must be a number of at least 0")

        async def look() -> dict[str, Any]:
            if (command := self._live.get(name)) is not None:
                seconds = min(float(wait), self.longest_wait)
                await anyio.to_thread.run_sync(
                    command.output.wait_for_more, seconds, command.ended, abandon_on_cancel=True
                )
            return self._state_of(name)

        return await self._record(step, name, look)

    async def stop(self, step: str, given: Mapping[str, Any]) -> str:
        """Stop a command and all its child processes, and return the rest of its output.

        Raises InvalidInput.
        """
        name = self._check_id(given)

        async def end() -> dict[str, Any]:
            if (command := self._live.get(name)) is not None:
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(command.stop)
            return self._state_of(name)

        return await self._record(step, name, end)

    async def news(self, decision: int) -> str:
        """Return the commands that have ended since the last report to the model, or ""."""
        open_ones = [name for name in self.known if name not in self._told]
        if not open_ones:
            return ""

        async def look() -> dict[str, Any]:
            return {"ended": {name: end for name in open_ones if (end := self._end_of(name))}}

        ended = (await self.recorder.step(f"background:{decision}", look, idempotent=True))["ended"]
        self._told.update(ended)
        return "\n".join(f"[{name} {end}]" for name, end in ended.items())

    async def end_all(self) -> None:
        """End all commands of the run."""
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as tasks:
                for command in self._all:
                    tasks.start_soon(anyio.to_thread.run_sync, command.stop)

    def _check_id(self, given: Mapping[str, Any]) -> str:
        name = str(given.get("id") or "")
        if name not in self.known:
            raise InvalidInput(f"unknown command {name!r}; started: {', '.join(self.known) or 'none'}")
        return name

    def _end_of(self, name: str) -> str:
        """Return how a command ended, or "" while it runs."""
        command = self._live.get(name)
        return LOST if command is None else command.end if command.ended.is_set() else ""

    def _state_of(self, name: str) -> dict[str, Any]:
        """Return the new output of a command with its state, as the result of a step."""
        command, end = self._live.get(name), self._end_of(name)
        text = command.output.take(ended=bool(end)) if command is not None else ""
        state = end or f"has been running for {command.seconds if command is not None else 0:,.0f} s"
        return {"text": text, "state": state, "ended": bool(end)}

    async def _record(self, step: str, name: str, look: Any) -> str:
        found = await self.recorder.step(f"act:{step}", look, idempotent=True)
        if found["ended"]:
            self._told.add(name)
        text = str(found["text"])
        if text and not text.endswith("\n"):
            text += "\n"
        return f"{text or '[no new output]\n'}[{name} {found['state']}]"
