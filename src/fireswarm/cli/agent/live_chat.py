"""A chat with a model that calls tools: one run that goes on with every message, also after the chat has ended."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from fireswarm.agent.chat import run_of_session, session_file
from fireswarm.agent.run import INTERRUPTED, AgentTask, Watching, carry_out
from fireswarm.cli.agent.model_of_run import ModelOptions
from fireswarm.contracts.swarm.event import EventRecord, EventType
from fireswarm.mind import Conclusion
from fireswarm.settings import AgentSettings
from fireswarm.skills.packs.catalog import Catalog
from fireswarm.swarm.records.run_files import RunLog, new_run_id

if TYPE_CHECKING:
    from rich.console import Console

HELP = (
    "/cost    tokens and USD of this chat\n"
    "/skills  the skills that the agent knows\n"
    "/model   the model\n"
    "/resume  how to go on with this conversation later\n"
    "/exit    leave; an empty line or Ctrl+D does the same. Ctrl+C stops the work and keeps what was done."
)


@dataclass(slots=True)
class LiveChat:
    """One conversation. ``run_id`` is its run, or "" before the first message.

    ``tell`` prints an answer unless it is on the screen; ``say`` prints a conclusion and returns its exit code.
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
    _file: Path = field(init=False)

    def __post_init__(self) -> None:
        """Find the run of the session. Raises InvalidInput for a bad name of a session."""
        self._file = session_file(self._runs / "chats", self.session, ".run")
        if (folder := run_of_session(self._runs, self.session)) is not None:
            self.run_id = folder.name

    @property
    def _runs(self) -> Path:
        return Path.cwd() / self.settings.logging.jsonl_dir

    def hold(self) -> int:
        """Read messages and answer them until the person leaves; returns the exit code of the last answer."""
        opening = f"goes on (run {self.run_id})" if self.run_id else "a new conversation"
        self.console.print(f"session {self.session}: {opening}. /help lists the commands.", style="dim")
        task = self._begin()
        while task is not None:
            code = anyio.run(self._run, task)
            if code != INTERRUPTED:
                return code
            self.console.print("Stopped; what was done is kept. Enter goes on with it, Ctrl+D leaves.", style="dim")
            if _read_message() is None:
                return code
        return 0

    def _begin(self) -> AgentTask | None:
        """Return the task of the run; its first message begins a new one. None if the person says nothing."""
        if self.run_id:
            return replace(AgentTask.of_run(self._runs / self.run_id), yes=self.yes)
        message = self._next_message()
        return None if message is None else AgentTask(message, session=self.session, yes=self.yes)

    async def _run(self, task: AgentTask) -> int:
        async def next_message(answer: str) -> str | None:
            self.tell(answer)
            return await anyio.to_thread.run_sync(self._next_message, abandon_on_cancel=True)

        known = self.run_id
        watching = replace(self.watching, on_event=self._count, next_message=next_message)
        self.run_id = known or new_run_id()
        if not known:
            self.options.keep(self._runs / self.run_id, self.settings)
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(self.run_id, encoding="utf-8")
        conclusion, log = await carry_out(
            self.settings, self.catalog, task, Path.cwd(), watching, resume=known or None, run_id=self.run_id
        )
        return self.say(conclusion, log)

    def _count(self, event: EventRecord) -> None:
        if event.event_type is EventType.LLM_RESPONSE_RECEIVED:
            payload = event.payload
            self.tokens += int(payload.get("input_tokens") or 0) + int(payload.get("output_tokens") or 0)
            self.usd += float(payload.get("usd") or 0.0)
        if self.watching.on_event is not None:
            self.watching.on_event(event)

    def _next_message(self) -> str | None:
        """Read until a message that is not a command; None at the end."""
        while (message := _read_message()) is not None:
            word = message.strip()
            if word == "/exit" or not word:
                return None
            if not word.startswith("/") or " " in word or "/" in word[1:]:
                return message
            self.console.print(self._answer_to(word), markup=False)
        return None

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
                return f"agent chat --session {self.session}, or agent resume {self.run_id or 'RUN'} --message TEXT"
            case _:
                return f"unknown command {command}\n{HELP}"


def _read_message() -> str | None:
    """Read one message; None at the end. A terminal has line editing, and a paste of several lines is one message."""
    if not sys.stdin.isatty():
        sys.stderr.write("> ")
        sys.stderr.flush()
        line = sys.stdin.readline()
        return line.rstrip("\n") if line else None
    with contextlib.suppress(ImportError):
        import readline  # gives `input` editing and history

        readline.parse_and_bind("set enable-bracketed-paste on")
    try:
        return input("> ")
    except (EOFError, KeyboardInterrupt):
        return None
