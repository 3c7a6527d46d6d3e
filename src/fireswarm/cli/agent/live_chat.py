"""A chat with a model that calls tools: one run that continues with every message, also after the chat has ended."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskStatus

from fireswarm.agent.chat import has_ended, run_of_session, session_file, too_long
from fireswarm.agent.run import Watching, carry_out
from fireswarm.agent.task import AgentTask
from fireswarm.cli.agent.ask import ask_by
from fireswarm.cli.agent.line_reader import ChatHistory, LineReader, StoppedByPerson, restored_terminal
from fireswarm.cli.agent.model_of_run import ModelOptions
from fireswarm.contracts.base import command_line
from fireswarm.contracts.skills.skill import Question
from fireswarm.contracts.swarm.event import EventRecord, EventType
from fireswarm.mind import Conclusion, Steering
from fireswarm.processes.startup import INTERRUPTED, run_loop
from fireswarm.runs.make_mind import redactor_for
from fireswarm.runs.sinks.files import RunLog, new_run_id
from fireswarm.settings import AgentSettings
from fireswarm.settings.run_folders import CHATS_FOLDER, kept_runs, make_kept_folder
from fireswarm.skills.packs.catalog import Catalog

if TYPE_CHECKING:
    from rich.console import Console

HELP = (
    "/cost    tokens and USD of this chat\n/skills  the skills that the agent knows\n/model   the model\n/resume  "
    "how to continue this conversation later\n/exit    leave; an empty line or Ctrl+D does the same\nCtrl+C stops "
    "the work; finished actions are not lost. Lines you type while the agent works are sent before its "
    "next\nanswer. A line that ends in a backslash continues on the next line; several pasted lines are one "
    "message."
)
TRUNCATED = "The terminal truncated that line, so it was not sent. Paste it at the prompt."

LONGEST_TYPED = 4_095
"""Maximum bytes of a line in a terminal's input buffer."""

COMMANDS = ("/cost", "/exit", "/help", "/model", "/resume", "/skills")


@dataclass(slots=True)
class LiveChat:
    """One conversation. ``run_id`` is its run, or "" before the first message.

    ``tell`` prints an answer that is not on the screen yet; ``say`` prints a conclusion and returns its exit code.
    """

    settings: AgentSettings
    catalog: Catalog
    session: str
    console: Console
    watching: Watching
    tell: Callable[[str], None]
    say: Callable[[Conclusion, RunLog], int]
    options: ModelOptions = field(default_factory=ModelOptions)
    yes: bool = False
    run_id: str = ""
    tokens: int = 0
    usd: float = 0.0
    reader: LineReader = field(init=False)
    steering: Steering = field(init=False)
    _file: Path = field(init=False)
    _stopped: bool = False
    _leaves: bool = False
    _draft: str = ""
    _terminated: bool = False

    def __post_init__(self) -> None:
        """Find the run of the session. Raises InvalidInput for a bad name of a session."""
        self._file = session_file(self._runs / CHATS_FOLDER, self.session, ".run")
        if (folder := run_of_session(self._runs, self.session)) is not None:
            self.run_id = folder.name
        history = ChatHistory(self._runs / CHATS_FOLDER / "history.jsonl", redactor_for(self.settings))
        self.reader = LineReader(history)
        self.steering = Steering(typed=self._take_typed)

    @property
    def _runs(self) -> Path:
        return kept_runs(Path.cwd())

    def hold(self) -> int:
        """Read messages and answer them until the person leaves; returns the exit code of the last answer."""
        with restored_terminal(keeps_typed=True):
            return self._hold()

    def _hold(self) -> int:
        opening = f"continues (run {self.run_id})" if self.run_id else "a new conversation"
        self.console.print(f"session {self.session}: {opening}. /help lists the commands.", style="dim")
        if self.run_id and not has_ended(self._runs / self.run_id) and not self._waits_for_work():
            return 0
        task = self._begin()
        while task is not None:
            code = run_loop(self._run, task)
            if self._terminated or self.reader.is_reading or (code != INTERRUPTED and not self._stopped):
                return code
            if not self._waits_for_work():
                return code
            task = replace(AgentTask.of_run(self._runs / self.run_id), yes=self.yes)
        return INTERRUPTED if self._stopped else 0

    def _waits_for_work(self) -> bool:
        """Ask how to continue after work was stopped: a message changes the task. Returns False to leave.

        Earlier input is not taken as the reply: the person gets it as a line to edit.
        """
        self._stopped = False
        self._draft += self.steering.take() + self.reader.take_typed(unfinished=True)
        self.console.print(
            "Stopped; finished actions are not lost. Enter continues, a message changes the task, Ctrl+D leaves.",
            style="dim",
        )
        message = run_loop(self._until_sigterm, self._read_message)
        if message:
            self.steering.text, self.steering.stopped = message, True
        return message is not None

    def _begin(self) -> AgentTask | None:
        """Return the task of the run; its first message begins a new one. Returns None if the person enters nothing."""
        if self.run_id:
            return replace(AgentTask.of_run(self._runs / self.run_id), yes=self.yes)
        message = run_loop(self._until_sigterm, self._next_message)
        return None if message is None else AgentTask(message, session=self.session, yes=self.yes)

    async def _run(self, task: AgentTask) -> int:
        async def next_message(answer: str) -> str | None:
            self.tell(answer)
            said = self.steering.take() if self.steering.look() else ""
            return said or (None if self._leaves else await self._next_message())

        known = self.run_id
        asks = self.ask if self.watching.ask is not None else None
        watching = replace(self.watching, on_event=self._count, ask=asks, next_message=next_message)
        watching = replace(watching, steering=self.steering)
        self.run_id = known or new_run_id()
        if not known:
            self.options.keep(self._runs / self.run_id, self.settings)
        make_kept_folder(self._file.parent)
        self._file.write_text(self.run_id, encoding="utf-8")
        conclusion, log = await carry_out(
            self.settings, self.catalog, task, Path.cwd(), watching, resume=known or None, run_id=self.run_id
        )
        if conclusion.reason == "interrupted":
            return INTERRUPTED  # the next prompt says so
        return self.say(conclusion, log)

    def _count(self, event: EventRecord) -> None:
        if event.event_type is EventType.LLM_RESPONSE_RECEIVED:
            payload = event.payload
            self.tokens += int(payload.get("input_tokens") or 0) + int(payload.get("output_tokens") or 0)
            self.usd += float(payload.get("usd") or 0.0)
        if event.event_type is EventType.SIGNAL_RECEIVED and event.payload.get("signal") == signal.SIGTERM.name:
            self._terminated = True
        if self.watching.on_event is not None:
            self.watching.on_event(event)

    async def ask(self, question: Question) -> str | None:
        """Ask the person a question of the run. A typed command is run first; returns None to leave, or after Ctrl+C.

        Input from before the question is not taken as the answer: the model gets it later.
        """
        self.steering.look()
        self._draft += self.reader.take_typed(unfinished=True)

        async def read(prompt: str) -> str | None:
            while True:
                try:
                    answer = await self.reader.read(prompt, keeps=False)
                except StoppedByPerson:
                    self._stopped = True
                    return None
                if answer is None or answer.strip() == "/exit":
                    return None
                if answer.strip() not in COMMANDS:
                    return answer
                self.console.print(self._answer_to(answer.strip()), markup=False)

        return await ask_by(read, question)

    async def _until_sigterm(self, read: Callable[[], Awaitable[str | None]]) -> str | None:
        """Read a message while no run is in progress; None at the end, after Ctrl+C, or if SIGTERM ends the chat."""
        message: str | None = None
        async with anyio.create_task_group() as tasks:
            if sys.platform != "win32" and threading.current_thread() is threading.main_thread():
                await tasks.start(self._stop_on_sigterm, tasks.cancel_scope)
            with contextlib.suppress(StoppedByPerson):
                message = await read()
            tasks.cancel_scope.cancel()
        return message

    async def _stop_on_sigterm(self, scope: anyio.CancelScope, *, task_status: TaskStatus[None]) -> None:
        with anyio.open_signal_receiver(signal.SIGTERM) as signals:
            task_status.started()
            async for _ in signals:
                self._stopped = True
                scope.cancel()

    async def _next_message(self) -> str | None:
        """Read a message; None at the end."""
        return await self._read_message() or None

    async def _read_message(self) -> str | None:
        """Read until a message that is not a command; "" for an empty line, None to leave."""
        while True:
            try:
                draft, self._draft = self._draft, ""
                message = await self.reader.read(draft=draft)
            except StoppedByPerson:
                self.console.print("/exit or Ctrl+D leaves.", style="dim")
                continue
            if message is None or (word := message.strip()) == "/exit":
                return None
            if self._is_command(word):
                self.console.print(self._answer_to(word), markup=False)
            elif reason := too_long(message, self.settings.model):
                self.console.print(reason, style="yellow")
            else:
                return message if word else ""

    def _take_typed(self) -> str:
        """Return the input typed during the work; commands in it are run, /exit at the end."""
        lines, kept = self.reader.take_typed().split("\n"), list[str]()
        while lines and not lines[-1].strip():
            lines.pop()
        for number, line in enumerate(lines, 1):
            word = line.strip()
            if word == "/exit" and number == len(lines):
                self._leaves = True
            elif word in COMMANDS and word != "/exit":
                self.console.print(self._answer_to(word), markup=False)
            elif len(line.encode()) >= LONGEST_TYPED:
                self.console.print(TRUNCATED, style="yellow")
            else:
                kept.append(line)
        message = "\n".join(kept).replace("\\\n", "\n").strip("\n")
        if not message.strip():
            return ""
        if reason := too_long(message, self.settings.model):
            self.console.print(reason, style="yellow")
            return ""
        self.reader.keep(message)
        self.console.print("The model gets this before its next answer.", style="dim")
        return message

    @staticmethod
    def _is_command(word: str) -> bool:
        return word.startswith("/") and " " not in word and "\n" not in word and "/" not in word[1:]

    def _answer_to(self, command: str) -> str:
        match command:
            case "/help":
                return HELP
            case "/cost":
                return f"{self.tokens:,} tokens, {self.usd:.4f} USD"
            case "/skills":
                return ", ".join(sorted(self.catalog.skills)) or "no skills"
            case "/model":
                return f"{self.settings.model.provider} {self.settings.model.model_name}"
            case "/resume":
                chat = command_line("agent", "chat", "--session", self.session)
                return f"{chat}, or {command_line('agent', 'resume', self.run_id or 'RUN', '--message', 'TEXT')}"
            case _:
                return f"unknown command {command}\n{HELP}"
