"""Run the stand-alone agent on one task and write the run to ``runs/<run_id>/``."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import psutil
from anyio.abc import TaskStatus
from pydantic import ValidationError

from fireswarm.agent.folder_notes import describe_folder
from fireswarm.agent.outputs import with_outputs
from fireswarm.agent.skill_runner import SkillRunner
from fireswarm.capabilities import CapabilityContext, Resolved, registry_for
from fireswarm.capabilities.workspace.artifacts import ArtifactWriter, artifact_tools
from fireswarm.capabilities.workspace.describe import describe_tools
from fireswarm.capabilities.workspace.outputs import prepare_outputs
from fireswarm.capabilities.workspace.writing import workspace_tools
from fireswarm.clocks import ServerClock
from fireswarm.contracts.base import explain_validation
from fireswarm.contracts.limits import MAX_ERROR_CHARS, truncate
from fireswarm.contracts.ports import ChatModel
from fireswarm.contracts.skills.artifact import OUTPUT_FOLDER
from fireswarm.contracts.skills.capability import CapabilityUse
from fireswarm.contracts.skills.skill import Question
from fireswarm.contracts.skills.tool import Tool
from fireswarm.contracts.swarm.event import EventRecord, EventType
from fireswarm.contracts.swarm.run_folders import SPEND_FILE, make_runs_folder
from fireswarm.errors import ConfigError, InvalidInput
from fireswarm.llm.spend import FileLedger
from fireswarm.mind import Assignment, Conclusion, ConclusionStatus, Mind, Steering, think
from fireswarm.mind.permissions import Action, Policy, Verdict, policy_of
from fireswarm.processes.confinement.container import hide_environment
from fireswarm.processes.descendants import kill_running
from fireswarm.processes.startup import INTERRUPTED
from fireswarm.redaction import Redactor
from fireswarm.settings import AgentSettings
from fireswarm.settings.load import home_folder
from fireswarm.skills.packs.catalog import Catalog
from fireswarm.swarm.records.run_files import RunLog, new_run_id
from fireswarm.wiring.model import (
    AGENT_FILE,
    PROTOCOL_FILE,
    TOOLS_FILE,
    close_model,
    make_mind,
    prompt_file,
    redactor_for,
)

TASK_FILE = "task.json"


@dataclass(frozen=True, slots=True)
class Watching:
    """Callbacks for events, streamed text and questions, and what a person says: to an answer, or to the work."""

    on_event: Callable[[EventRecord], None] | None = None
    on_words: Callable[[str], None] | None = None
    ask: Callable[[Question], Awaitable[str | None]] | None = None
    next_message: Callable[[str], Awaitable[str | None]] | None = None
    steering: Steering = field(default_factory=Steering)


@dataclass(frozen=True, slots=True)
class AgentTask:
    """One task for the stand-alone agent.

    ``material`` is text from earlier tasks of a chat; ``yes`` approves every action that no rule denies.
    """

    task: str
    skill: str | None = None
    context: Mapping[str, Any] = field(default_factory=dict)
    material: str = ""
    session: str = "default"
    dry_run: bool = False
    yes: bool = False

    @classmethod
    def of_run(cls, folder: Path) -> AgentTask:
        """Return the task of a run, as its folder keeps it.

        Raises InvalidInput if that is missing or damaged, or if the run worked in another folder than the current one.
        """
        path = folder / TASK_FILE
        try:
            content = json.loads(path.read_bytes())
            worked_in = content.pop("cwd")
            task = cls(**content)
        except (OSError, ValueError, TypeError, AttributeError, KeyError) as error:
            raise InvalidInput(f"{path} cannot be read, so the run cannot go on: {error}") from error
        if worked_in != str(Path.cwd()):
            raise InvalidInput(f"run {folder.name} worked in {worked_in}: go on with it there")
        return task

    def keep(self, folder: Path, redact: Redactor) -> None:
        """Write the task into the folder of its run, without secrets."""
        content = {"cwd": str(Path.cwd()), **redact.value(asdict(self))}
        (folder / TASK_FILE).write_text(json.dumps(content, ensure_ascii=False, default=str), encoding="utf-8")


def agent_capabilities(
    settings: AgentSettings, session: str, cwd: Path, run_id: str = "", outputs: Path | None = None
) -> AbstractAsyncContextManager[Resolved]:
    """Resolve the capabilities in the settings; they are open inside the block. Raises ConfigError."""
    try:
        uses = [CapabilityUse.model_validate(use) for use in settings.capabilities]
    except ValidationError as error:
        raise ConfigError(f"capabilities: {explain_validation(error)}") from error
    return registry_for(uses).open(
        uses, CapabilityContext(session, cwd, ServerClock(), task_id=run_id, outputs=outputs)
    )


def agent_system(root: Path, given: Resolved, *, calls_tools: bool = False) -> str:
    """Return the system text: the capabilities' prompts, roles/AGENT.md, the protocol, and the tools.

    A model that calls tools gets them by itself.
    """
    roles = root / "roles"
    if calls_tools:
        own = (prompt_file(roles, AGENT_FILE), prompt_file(roles, TOOLS_FILE))
    else:
        own = (prompt_file(roles, AGENT_FILE), prompt_file(roles, PROTOCOL_FILE), describe_tools(given.tools))
    return "\n\n".join(text for text in (*given.prompts, *own) if text)


def agent_material(folder: str, given: AgentTask) -> str:
    """Return what is known before the first turn: the *folder*'s state, and text from earlier tasks."""
    return "\n\n".join(text for text in (folder, given.material) if text)


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The folders of a run, and the rules for them."""

    cwd: Path
    outputs: Path
    redact: Redactor
    policy: Policy
    profile: str

    def tools(self) -> dict[str, Tool]:
        """Return the tools for files. Those that write are bound to the output folder if the run may not write."""

        def refusal(path: str) -> str:
            return self.policy.judge(Action("Read", path, path, self.cwd, changes=False)).because

        writer = ArtifactWriter(self.cwd, self.outputs, self.redact.text, refusal=refusal)
        return workspace_tools(self.cwd, self.outputs, writable=self.profile == "permissive") | artifact_tools(writer)


def agent_tools(files: RunFiles, given: Resolved, *, calls_tools: bool) -> dict[str, Tool]:
    """Return the tools of a run: those of the capabilities, and for a model that calls tools those for files."""
    return {**(files.tools() if calls_tools else {}), **given.tools}


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

    *resume* is the id of an earlier run that goes on, *run_id* that of a new one.
    SIGINT and SIGTERM stop it in order: child processes are killed, a last event is written, the log is flushed.
    """
    if settings.runtime.confinement == "container":
        hide_environment()
    watching = watching or Watching()
    clock = ServerClock()
    run_id = resume or run_id or new_run_id(clock.now())
    runs = root / settings.logging.jsonl_dir
    make_runs_folder(runs)
    log = RunLog(
        runs / run_id,
        run_id,
        clock,
        redactor_for(settings),
        debug=settings.logging.debug_llm_bodies,
        on_event=watching.on_event,
        on_words=watching.on_words,
    )
    if resume is None:
        given.keep(log.folder, redactor_for(settings))
    ledger = FileLedger(runs / SPEND_FILE, clock, given.session, run_id)
    try:
        mind = make_mind(settings, catalog, clock, root, ledger=ledger, model=model, asks=not given.dry_run)
        try:
            container = settings.runtime.confinement == "container"
            outputs = prepare_outputs(log.folder / OUTPUT_FOLDER, Path.cwd(), container=container)
            async with agent_capabilities(settings, given.session, Path.cwd(), run_id, outputs) as tools:
                folder = await _folder_at_the_start(log, mind)
                assignment = _assignment(given, folder, mind, log, root, watching, tools, outputs)
                conclusion = await _until_signalled(mind, assignment, log, settings.runtime.signal_grace_seconds)
                return await anyio.to_thread.run_sync(with_outputs, conclusion, outputs, mind.redact), log
        finally:
            if model is None:
                await close_model(mind)
    finally:
        log.close()


async def _folder_at_the_start(log: RunLog, mind: Mind) -> str:
    """Return what the model is told of the folder: a run that goes on is told the same, or no cache would serve it."""

    async def look() -> dict[str, Any]:
        described = await anyio.to_thread.run_sync(describe_folder, Path.cwd(), home_folder())
        return {"text": described}

    if not mind.calls_tools:
        return ""
    return str((await log.step("folder", look, idempotent=True))["text"])


def _assignment(
    given: AgentTask,
    folder: str,
    mind: Mind,
    log: RunLog,
    root: Path,
    watching: Watching,
    tools: Resolved,
    outputs: Path,
) -> Assignment:
    """Build the assignment for the model's loop."""
    cwd = Path.cwd()
    settings = mind.settings
    skills = SkillRunner(
        *(given.context, given.task, given.session, log, cwd, mind.catalog, settings.runtime),
        *(settings.skills.outside_scripts, mind.redact),
    )
    policy = policy_of(settings.permissions, Verdict.ASK, yes=given.yes)
    files = RunFiles(cwd, outputs, mind.redact, policy, settings.runtime.profile)
    return Assignment(
        task=given.task,
        system=agent_system(root, tools, calls_tools=mind.calls_tools),
        cwd=cwd,
        context=given.context,
        material=agent_material(folder, given),
        named=given.skill,
        ask=watching.ask,
        run_skill=skills.run,
        tools=agent_tools(files, tools, calls_tools=mind.calls_tools),
        policy=policy,
        outputs=outputs,
        dry_run=given.dry_run,
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
                await tasks.start(stop.listen)  # before the first turn, which may come to its end without a pause
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
        """Exit at once: kill child processes and write the final event."""
        kill_running()
        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                child.kill()
        with contextlib.suppress(ValueError):  # the log is closed already
            self.log.event(EventType.RUN_FAILED, {"reason": "interrupted", "error": "ended before it had stopped"})
        os._exit(INTERRUPTED)

    def over(self) -> None:
        """Stop the grace timer: the run has ended."""
        if self._watchdog is not None:
            self._watchdog.cancel()
