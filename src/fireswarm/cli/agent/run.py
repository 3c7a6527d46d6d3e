"""Implementation of ``agent run`` and ``agent chat``.

Modules that draw on the terminal are imported on first use.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import anyio
import anyio.to_thread

from fireswarm.agent.chat import too_long
from fireswarm.agent.folder_notes import describe_folder
from fireswarm.agent.outputs import left_out_notes
from fireswarm.agent.preview import first_request
from fireswarm.agent.run import RunPlace, Watching, agent_capabilities, carry_out
from fireswarm.agent.task import AgentTask
from fireswarm.cli.agent.answers import GivenAnswers, say_waiting
from fireswarm.cli.agent.ask import ask_person
from fireswarm.cli.agent.model_of_run import ModelOptions
from fireswarm.cli.shared.console import json_text
from fireswarm.clocks import ServerClock
from fireswarm.contracts.base import command_line
from fireswarm.contracts.grant import Verdict
from fireswarm.contracts.skills.artifact import OUTPUT_FOLDER
from fireswarm.contracts.skills.skill import Question
from fireswarm.errors import InvalidInput, NotFound
from fireswarm.mind import Conclusion, ConclusionStatus
from fireswarm.mind.mind import RunFailed
from fireswarm.processes.startup import INTERRUPTED, run_loop
from fireswarm.runs.assemble import grant_of, hide_denied
from fireswarm.runs.make_mind import agent_catalog, make_mind, redactor_for
from fireswarm.runs.model_adapters import make_model
from fireswarm.runs.sinks.files import RunLog, new_run_id, run_folder
from fireswarm.settings import AgentSettings
from fireswarm.settings.load import home_folder
from fireswarm.settings.run_folders import kept_runs

if TYPE_CHECKING:
    from fireswarm.cli.watch.run_view import RunView

# The event loop kills the processes of skills when it closes, and would warn that they ended unexpectedly.
logging.getLogger("asyncio").setLevel(logging.ERROR)

WAITING = 3
"""Exit code of a run that can be resumed later: it needs an answer, or its provider requests a pause."""


NEEDS_MESSAGE = frozenset(
    {"no_progress", "max_turns_exceeded", "decision_invalid", "step_failed", "result_invalid", "stopped_before"}
)
"""Reasons of ends that a run would reach again without a person's message."""


def task_of(
    task: str, skill: str | None, context: Sequence[str] | None, *, dry_run: bool, yes: bool = False
) -> AgentTask:
    """Build the task from the options."""
    if not context:
        return AgentTask(task, skill, dry_run=dry_run, yes=yes)
    from fireswarm.cli.shared.options import pairs

    return AgentTask(task, skill, pairs(context, "--context"), dry_run=dry_run, yes=yes)


def run_once(
    settings: AgentSettings,
    task: AgentTask,
    skills_dir: Sequence[Path],
    *,
    as_json: bool,
    resume: str | None = None,
    message: str = "",
    answers: Sequence[str] | None = None,
    events: bool = False,
    options: ModelOptions | None = None,
) -> int:
    """Run one task, or continue the run *resume*; returns the exit code.

    *message* replies to the answer of that run; *answers* are ``name=value`` for its questions. *options* chose the
    model of a new run.
    """
    screen = Screen(Watching()) if as_json else _screen(settings, events=events)
    given = GivenAnswers.parse(answers or (), message)
    watching = given.watching(screen.watching)
    catalog = agent_catalog(settings, Path.cwd(), home_folder(), skills_dir)
    run_id = resume or new_run_id()
    if resume is None:
        (options or ModelOptions()).keep(kept_runs(Path.cwd()) / run_id, settings)

    async def call() -> tuple[Conclusion, RunLog]:
        return await carry_out(settings, catalog, task, Path.cwd(), watching, resume=resume, run_id=run_id)

    conclusion, log = run_loop(call)
    if as_json:
        sys.stdout.write(json_text(redactor_for(settings).value(_as_json(conclusion, log))) + "\n")
    else:
        _say(conclusion, log, shown=screen.shows(conclusion))
    if fault := given.fault(conclusion):
        sys.stderr.write(f"error: {fault}\n")
        return _exit_code(conclusion) or 1
    return _exit_code(conclusion)


def go_on(
    settings: AgentSettings,
    run_id: str,
    skills_dir: Sequence[Path],
    *,
    as_json: bool = False,
    message: str = "",
    answers: Sequence[str] | None = None,
    yes: bool = False,
    events: bool = False,
) -> int:
    """Continue an earlier run in its folder; returns the exit code. Raises NotFound and InvalidInput."""
    folder = run_folder(kept_runs(Path.cwd()), run_id, Path.cwd() / settings.logging.jsonl_dir)
    task = AgentTask.of_run(folder)
    task = replace(task, yes=yes)
    if reason := too_long(message, settings.model):
        raise InvalidInput(reason)
    return run_once(
        settings, task, skills_dir, as_json=as_json, resume=folder.name, message=message, answers=answers, events=events
    )


def show_prompt(settings: AgentSettings, task: AgentTask, skills_dir: Sequence[Path]) -> int:
    """Print the first request exactly. No key is needed, and nothing is sent."""
    cwd = Path.cwd()
    model = make_model(settings, cwd, os.environ, sends=False)
    home = home_folder()
    catalog = agent_catalog(settings, cwd, home, skills_dir)
    mind = make_mind(settings, catalog, ServerClock(), cwd, model=model, home=home)
    outputs = kept_runs(cwd) / "RUN_ID" / OUTPUT_FOLDER  # a preview has no run

    async def call() -> dict[str, Any]:
        grant = grant_of(settings, cwd, auto=Verdict.ASK)
        described = await anyio.to_thread.run_sync(describe_folder, cwd, home_folder(), hide_denied(grant))
        async with agent_capabilities(settings, task.session, grant) as given:
            return await first_request(task, mind, RunPlace(cwd, grant, outputs, given, described))

    try:
        request = run_loop(call)
    except RunFailed as failure:
        raise NotFound(f"there would be no request: {failure}") from failure
    sys.stdout.write(json_text(request) + "\n")
    return 0


def chat(
    settings: AgentSettings,
    session: str,
    skills_dir: Sequence[Path],
    *,
    yes: bool = False,
    options: ModelOptions | None = None,
) -> int:
    """Hold a conversation with a model; returns the exit code of the last answer."""
    from fireswarm.cli.agent.live_chat import LiveChat
    from fireswarm.cli.shared.console import make_console
    from fireswarm.cli.watch.answer import print_answer

    console, screen = make_console(), _screen(settings)
    catalog = agent_catalog(settings, Path.cwd(), home_folder(), skills_dir)

    def say(conclusion: Conclusion, log: RunLog) -> int:
        shown = conclusion.status is ConclusionStatus.FINISHED  # it was printed as an answer
        _say(conclusion, log, shown=shown, in_chat=True)
        return _exit_code(conclusion)

    def tell(answer: str) -> None:
        if screen.view is None or screen.view.answer != answer.strip():
            print_answer(answer, console)

    return LiveChat(
        settings, catalog, session, console, screen.watching, tell, say, options or ModelOptions(), yes
    ).hold()


@dataclass(frozen=True, slots=True)
class Screen:
    """The callbacks of a run, and the compact view of it on a terminal."""

    watching: Watching
    view: RunView | None = None

    def shows(self, conclusion: Conclusion) -> bool:
        """Return True if the answer is already on standard output."""
        answer = self.view.answer if self.view is not None and sys.stdout.isatty() else ""
        return bool(conclusion.answer) and answer == conclusion.answer.strip()


def _screen(settings: AgentSettings, *, events: bool = False) -> Screen:
    """Return the compact view on a terminal; otherwise, and on request, lines of events.

    In a pipe, standard output has only the answer, and the terminal shows the view on standard error.
    """
    from fireswarm.cli.shared.console import make_console
    from fireswarm.cli.watch.event_line import EventPrinter

    console = make_console(stderr=True)
    ask = ask_person if sys.stdin.isatty() else None
    if console.is_terminal and not events and settings.logging.level == "info":
        from fireswarm.cli.watch.run_view import RunView

        view = RunView(make_console(stderr=not sys.stdout.isatty()))

        async def ask_showing(question: Question) -> str | None:
            view.approved = question.approval.diff if question.approval is not None else ""
            return await ask_person(question)

        asks = ask_showing if ask is not None else None
        return Screen(Watching(view.event, view.words if settings.model.stream else None, asks), view)
    printer = EventPrinter(console, settings.logging.level)
    words = printer.words if console.is_terminal and settings.model.stream else None
    return Screen(Watching(printer.event, words, ask))


def _say(conclusion: Conclusion, log: RunLog, *, shown: bool = False, in_chat: bool = False) -> None:
    """Print a conclusion: error, questions or answer, then files and the run's id.

    After a run that can be continued, print the command for that, except *in_chat*, where the next message does it.
    """
    from fireswarm.cli.shared.console import make_console

    console, errors = make_console(), make_console(stderr=True)
    if conclusion.failed:
        word = "blocked" if conclusion.status is ConclusionStatus.BLOCKED else "error"
        errors.prose(f"{word} ({conclusion.reason}): {conclusion.answer}")
    elif conclusion.status is ConclusionStatus.WAITING:
        say_waiting(conclusion, log.run_id, console)
    elif conclusion.answer and not shown:
        from fireswarm.cli.watch.answer import print_answer

        print_answer(conclusion.answer, console)
    further = console if sys.stdout.isatty() else errors  # a pipe gets only the answer
    for output in conclusion.outputs:
        for artifact in output.artifacts:
            if artifact.uri:
                further.print(f"{artifact.type}: {_place_of(artifact.uri)}", markup=False, soft_wrap=True)
    for note in left_out_notes(conclusion):
        further.print(note, markup=False, style="yellow")
    further.print(f"run {log.run_id}", style="dim")
    if conclusion.failed and not in_chat:
        when = "after that" if conclusion.status is ConclusionStatus.BLOCKED else "it"
        errors.print(f"Continue {when}: {_resume_command(conclusion, log.run_id)}", soft_wrap=True)


def _resume_command(conclusion: Conclusion, run_id: str) -> str:
    """Return the command that continues a run: one that would end again in the same way needs a message."""
    said = ' --message "..."' if conclusion.reason in NEEDS_MESSAGE else ""
    return f"{command_line('agent', 'resume', run_id)}{said}"


def _place_of(uri: str) -> str:
    """Return the path of a file URI; any other URI is returned unchanged."""
    return unquote(uri.removeprefix("file://")) if uri.startswith("file://") else uri


def _as_json(conclusion: Conclusion, log: RunLog) -> dict[str, Any]:
    """Return a conclusion as JSON fields."""
    return {
        "run_id": log.run_id,
        "ending": conclusion.status.value,
        "reason": conclusion.reason,
        "answer": conclusion.answer,
        "result": dict(conclusion.result),
        "skill": conclusion.skill,
        "turns": conclusion.turns,
        **conclusion.spend.fields(),
        "questions": [question.model_dump(mode="json") for question in conclusion.questions],
        "artifacts": [
            item.model_dump(mode="json", exclude_none=True) for out in conclusion.outputs for item in out.artifacts
        ],
        "left_out": left_out_notes(conclusion),
    }


def _exit_code(conclusion: Conclusion) -> int:
    if conclusion.reason == "interrupted":
        return INTERRUPTED
    codes = {
        ConclusionStatus.FAILED: 1,
        ConclusionStatus.BLOCKED: WAITING,
        ConclusionStatus.WAITING: WAITING,
        ConclusionStatus.DELEGATING: 1,
    }
    return codes.get(conclusion.status, 0)
