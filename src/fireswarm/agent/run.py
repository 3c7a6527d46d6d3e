"""Run the stand-alone agent on one task, and keep the run in the state folder of the user."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import psutil
from anyio.abc import TaskStatus
from pydantic import ValidationError

from fireswarm.agent.folder_notes import describe_folder
from fireswarm.agent.outputs import with_outputs
from fireswarm.agent.skill_runner import AgentSkills
from fireswarm.agent.task import AgentTask
from fireswarm.capabilities import CapabilityContext, Resolved, registry_for
from fireswarm.capabilities.workspace.outputs import prepare_outputs
from fireswarm.clocks import ServerClock
from fireswarm.contracts.base import explain_validation
from fireswarm.contracts.grant import Grant, Verdict
from fireswarm.contracts.limits import MAX_ERROR_CHARS, truncate
from fireswarm.contracts.ports import ChatModel
from fireswarm.contracts.skills.artifact import OUTPUT_FOLDER
from fireswarm.contracts.skills.capability import CapabilityUse
from fireswarm.contracts.skills.skill import Question
from fireswarm.contracts.swarm.event import EventRecord, EventType
from fireswarm.errors import ConfigError
from fireswarm.llm.spend import FileLedger
from fireswarm.mind import Assignment, Conclusion, ConclusionStatus, Mind, Steering, think
from fireswarm.processes.confinement.container import hide_environment
from fireswarm.processes.confinement.paths.late_names import set_aside_left, set_aside_now
from fireswarm.processes.descendants import EXIT_SECONDS, kill_running
from fireswarm.processes.startup import INTERRUPTED
from fireswarm.runs.assemble import file_tools, grant_of, hide_denied, system_text
from fireswarm.runs.make_mind import (
    AGENT_FILE,
    TOOLS_FILE,
    close_model,
    make_mind,
    prompt_file,
    redactor_for,
)
from fireswarm.runs.sinks.files import RunLog, new_run_id, open_copy
from fireswarm.settings import AgentSettings
from fireswarm.settings.load import home_folder
from fireswarm.settings.run_folders import SPEND_FILE, kept_runs, make_kept_folder
from fireswarm.skills.packs.catalog import Catalog
from fireswarm.skills.running.denied_reads import DeniedReads


@dataclass(frozen=True, slots=True)
class Watching:
    """Callbacks for events, streamed text, questions, and a person's messages: replies, or steering of the work."""

    on_event: Callable[[EventRecord], None] | None = None
    on_words: Callable[[str], None] | None = None
    ask: Callable[[Question], Awaitable[str | None]] | None = None
    next_message: Callable[[str], Awaitable[str | None]] | None = None
    steering: Steering = field(default_factory=Steering)


def agent_capabilities(
    settings: AgentSettings, session: str, grant: Grant, run_id: str = "", outputs: Path | None = None
) -> AbstractAsyncContextManager[Resolved]:
    """Resolve the capabilities in the settings; they are open inside the block. Raises ConfigError."""
    try:
        uses = [CapabilityUse.model_validate(use) for use in settings.capabilities]
    except ValidationError as error:
        raise ConfigError(f"capabilities: {explain_validation(error)}") from error
    return registry_for(uses).open(
        uses,
        CapabilityContext(
            session,
            grant.cwd,
            ServerClock(),
            task_id=run_id,
            outputs=outputs,
            hides=hide_denied(grant),
            redact=redactor_for(settings),
        ),
    )


@dataclass(frozen=True, slots=True)
class RunPlace:
    """The folders of a run, its grant and capabilities. ``root`` holds ``roles/``.

    ``described`` is the folder's state at the start.
    """

    root: Path
    grant: Grant
    outputs: Path
    capabilities: Resolved
    described: str = ""


async def carry_out(
    settings: AgentSettings,
    catalog: Catalog,
    given: AgentTask,
    root: Path,
    watching: Watching | None = None,
    *,
    model: ChatModel | None = None,
    resume: str | None = None,
    run_id: str | None = None,
) -> tuple[Conclusion, RunLog]:
    """Run one task and return its conclusion and its log.

    *resume* is the id of an earlier run to continue, *run_id* that of a new one. SIGINT and SIGTERM stop it in order:
    child processes are killed, a last event is written, the log is flushed.
    """
    if settings.runtime.confinement == "container":
        hide_environment()
    await anyio.to_thread.run_sync(set_aside_left)
    watching = watching or Watching()
    clock = ServerClock()
    run_id = resume or run_id or new_run_id(clock.now())
    runs = kept_runs(root)
    make_kept_folder(runs / run_id)
    if resume is None:
        given.keep(runs / run_id, redactor_for(settings))
    log = RunLog(
        runs / run_id,
        run_id,
        clock,
        redactor_for(settings),
        debug=settings.logging.debug_llm_bodies,
        on_event=watching.on_event,
        on_words=watching.on_words,
        copy=open_copy(root, settings.logging.jsonl_dir, run_id),
    )
    ledger = FileLedger(runs / SPEND_FILE, clock, given.session, run_id)
    try:
        asks, home = not given.dry_run, home_folder()
        mind = make_mind(settings, catalog, clock, root, ledger=ledger, model=model, asks=asks, home=home)
        try:
            container = settings.runtime.confinement == "container"
            outputs = prepare_outputs(log.folder / OUTPUT_FOLDER, Path.cwd(), container=container)
            grant = grant_of(settings, Path.cwd(), auto=Verdict.ASK, yes=given.yes)
            async with agent_capabilities(settings, given.session, grant, run_id, outputs) as tools:
                place = RunPlace(root, grant, outputs, tools, await _folder_at_the_start(log, grant))
                assignment = agent_assignment(given, mind, place, watching)
                conclusion = await _until_signalled(mind, assignment, log, settings.runtime.signal_grace_seconds)
                denied = DeniedReads.of(grant)
                return await anyio.to_thread.run_sync(with_outputs, conclusion, outputs, mind.redact, denied), log
        finally:
            if model is None:
                await close_model(mind)
    finally:
        log.close()


async def _folder_at_the_start(log: RunLog, grant: Grant) -> str:
    """Return the folder's state for the model; a resumed run uses the recorded one, to match the provider's cache."""

    async def look() -> dict[str, Any]:
        described = await anyio.to_thread.run_sync(describe_folder, Path.cwd(), home_folder(), hide_denied(grant))
        return {"text": described}

    return str((await log.step("folder", look, idempotent=True))["text"])


def agent_assignment(work: AgentTask, mind: Mind, place: RunPlace, watching: Watching) -> Assignment:
    """Build the assignment of a run: system text, tools, skills, and the folder's state."""
    roles, grant = place.root / "roles", place.grant
    own = (prompt_file(roles, name, home_folder()) for name in (AGENT_FILE, TOOLS_FILE))
    texts = (*place.capabilities.prompts, *own)
    return Assignment(
        task=work.task,
        system=system_text(texts),
        grant=grant,
        context=work.context,
        material=place.described,
        named=work.skill,
        ask=watching.ask,
        run_skill=AgentSkills.of_run(work, place.outputs.parent, mind, grant).run,
        tools={**file_tools(grant, place.outputs, mind.redact), **place.capabilities.tools},
        outputs=place.outputs,
        dry_run=work.dry_run,
        next_message=watching.next_message,
        steering=watching.steering,
    )


async def _until_signalled(mind: Mind, assignment: Assignment, log: RunLog, grace_seconds: float) -> Conclusion:
    """Run the model's loop until its conclusion or a signal.

    A second signal, or the end of the grace time, kills the process.
    """
    stop = _Stop(log, grace_seconds)
    try:
        async with anyio.create_task_group() as tasks:
            # On Windows, Ctrl+C raises KeyboardInterrupt, which cancels as well.
            if sys.platform != "win32" and threading.current_thread() is threading.main_thread():
                await tasks.start(stop.listen)  # before the first decision; the run may end without ever pausing
            with stop.scope:
                stop.conclusion = await think(mind, assignment, log)
            tasks.cancel_scope.cancel()
    except BaseException as error:
        reason = "internal_error" if isinstance(error, Exception) else "interrupted"
        log.event(
            EventType.RUN_FAILED,
            {"reason": reason, "error": truncate(f"{type(error).__name__}: {error}", MAX_ERROR_CHARS)},
        )
        raise
    finally:
        stop.over()
    if stop.conclusion is not None:
        return stop.conclusion
    message = f"stopped by {stop.signal_name}"
    log.event(EventType.RUN_FAILED, {"reason": "interrupted", "error": message})
    return Conclusion(ConclusionStatus.FAILED, "interrupted", message)


@dataclass(slots=True)
class _Stop:
    """Listens for SIGINT and SIGTERM and cancels the run's scope."""

    log: RunLog
    grace_seconds: float
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    conclusion: Conclusion | None = None
    signal_name: str = ""
    _watchdog: threading.Timer | None = None

    async def listen(self, *, task_status: TaskStatus[None]) -> None:
        """Cancel the run on the first signal and start the grace timer; exit on the second signal."""
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            task_status.started()
            async for number in signals:
                if self.signal_name:
                    self.leave()
                self.signal_name = signal.Signals(number).name
                self.log.event(EventType.SIGNAL_RECEIVED, {"signal": self.signal_name})
                self.log.event(EventType.GRACEFUL_SHUTDOWN_STARTED, {"grace_seconds": self.grace_seconds})
                self._watchdog = threading.Timer(self.grace_seconds, self.leave)
                self._watchdog.daemon = True
                self._watchdog.start()
                self.scope.cancel()

    def leave(self) -> None:
        """Exit at once: kill child processes, set aside what they made, and write the final event."""
        kill_running()
        children = psutil.Process().children(recursive=True)
        for child in children:
            with contextlib.suppress(psutil.Error):
                child.kill()
        psutil.wait_procs(children, timeout=EXIT_SECONDS)
        set_aside_now()
        with contextlib.suppress(ValueError):  # the log is closed already
            self.log.event(EventType.RUN_FAILED, {"reason": "interrupted", "error": "ended before it had stopped"})
        os._exit(INTERRUPTED)

    def over(self) -> None:
        """Stop the grace timer: the run has ended."""
        if self._watchdog is not None:
            self._watchdog.cancel()
