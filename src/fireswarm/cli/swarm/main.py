"""The command ``swarm``: its subcommands, and the reporting of errors."""

from __future__ import annotations

import json
import logging
import os
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

import typer

from firelite.errors import FireliteError
from fireswarm.cli.demo import demo
from fireswarm.cli.schedules import schedule_commands
from fireswarm.cli.shared import capabilities, skills
from fireswarm.cli.shared.errors import report_errors
from fireswarm.cli.swarm import answer, api, conversations, cost, doctor, fleet, inspect, pipeline, store, tasks
from fireswarm.cli.watch import artifacts, open_artifact, plan
from fireswarm.processes.confinement.paths.late_names import set_aside_left
from fireswarm.redaction import environment_redactor
from fireswarm.signals.current import log_fields

app = typer.Typer(
    name="swarm",
    help="Run a durable swarm of agents on Firestore: submit objectives, follow them and read their results.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(demo.demo)
app.command()(fleet.init)
app.command()(fleet.up)
app.command()(fleet.role)
app.command()(fleet.pause)
app.command()(fleet.resume)
app.command()(fleet.drain)
app.command()(tasks.submit)
app.command()(tasks.tasks)
app.command()(tasks.show)
app.command()(tasks.watch)
app.command()(tasks.cancel)
app.command()(tasks.retry)
app.add_typer(schedule_commands.app, name="schedule")
app.command()(cost.budget)
app.command()(answer.answer)
app.command()(answer.approve)
app.command()(answer.deny)
app.command()(answer.say)
app.command()(answer.fork)
app.command()(plan.plan)
app.command()(inspect.runs)
app.command()(inspect.agents)
app.command()(inspect.mail)
app.add_typer(inspect.memory_app, name="memory")
app.command()(inspect.cost)
app.command()(artifacts.artifacts)
app.command("open")(open_artifact.open_artifact)
app.command()(doctor.doctor)
app.command("capabilities")(capabilities.of_folder)
app.command()(api.api)
app.command("console")(api.console_command)
app.command("mcp")(api.mcp_command)
app.command("a2a")(api.a2a_command)
app.add_typer(pipeline.app_, name="pipeline")
app.add_typer(skills.app, name="skills")
app.add_typer(store.app, name="store")
app.add_typer(conversations.app, name="state")


def _version(show: bool) -> None:
    if show:
        from fireswarm.settings.packaged import __version__

        typer.echo(f"fireswarm {__version__}")
        raise typer.Exit


class LogFormat(StrEnum):
    """How log entries are written to standard error."""

    TEXT = "text"
    JSON = "json"


@app.callback()
def options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log internal events to standard error.")] = False,
    log_format: Annotated[
        LogFormat,
        typer.Option("--log-format", envvar="FIRESWARM_LOG_FORMAT", help="json: lines as Cloud Logging reads them."),
    ] = LogFormat.TEXT,
) -> None:
    """Options before any command."""
    shown = logging.StreamHandler()
    plain = _CleanFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    shown.setFormatter(_JsonFormatter() if log_format is LogFormat.JSON else plain)
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, handlers=[shown])
    if context.invoked_subcommand != "doctor":  # it lists them among its findings
        set_aside_left()  # before anything of a folder is read


class _CleanFormatter(logging.Formatter):
    """Redacts secrets in a whole log entry, including its traceback."""

    def format(self, record: logging.LogRecord) -> str:
        return environment_redactor().text(super().format(record))


class _JsonFormatter(logging.Formatter):
    """Writes an entry as one line of JSON with the names that Cloud Logging and Error Reporting know."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "severity": record.levelname,
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "logger": record.name,
            "message": record.getMessage(),
            **log_fields(os.environ.get("GOOGLE_CLOUD_PROJECT", "")),
        }
        if record.exc_info:
            entry["stack_trace"] = self.formatException(record.exc_info)
        clean = environment_redactor().text
        return json.dumps({name: clean(value) for name, value in entry.items()}, ensure_ascii=False)


def main() -> None:
    """Entry point: a known error is one line on standard error, with exit code 1."""
    with report_errors(FireliteError, OSError):
        app()
