"""The command ``agent``: one agent that works with skills, without a store."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fireswarm.cli.shared import capabilities, skills
from fireswarm.cli.shared.errors import report_errors
from fireswarm.errors import ConfigError, InvalidInput
from fireswarm.processes.confinement.paths.late_names import set_aside_left
from fireswarm.processes.startup import without_collector
from fireswarm.settings.load import home_folder
from fireswarm.settings.run_folders import kept_runs

if TYPE_CHECKING:  # the settings import pydantic, which --help does not need
    from fireswarm.settings import AgentSettings

app = typer.Typer(
    name="agent",
    help="Run a stand-alone agent: it selects a skill for the task, reads the necessary parts of it, and acts.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
config = typer.Typer(help="The settings file agent.yaml.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(config, name="config")
app.add_typer(skills.app, name="skills")
app.command()(capabilities.capabilities)

SWITCHES = ("--dry-run", "--debug-llm", "--stream")
"""Options that take ``true`` or ``false``; without a value they mean ``true``."""

PROVIDERS = "anthropic|anthropic-vertex|anthropic-bedrock|gemini|gemini-vertex|openai|scripted"

ConfigFile = Annotated[
    Path | None, typer.Option("--config", help="Settings file; default: ./agent.yaml, then ~/.config/agent/agent.yaml.")
]
SkillsDir = Annotated[
    list[Path] | None, typer.Option("--skills-dir", help="Folder of skills, searched first; repeatable.")
]
Profile = Annotated[
    str | None, typer.Option("--profile", metavar="permissive|read_only|demo_safe", help="Permissions of commands.")
]
ProviderOption = Annotated[
    str | None,
    typer.Option("--provider", metavar=PROVIDERS, help="API that serves the model."),
]
ModelName = Annotated[str | None, typer.Option("--model", help="Model; default: the provider's.")]
Script = Annotated[
    str | None, typer.Option("--script", help="Answers for provider scripted: FILE.json or FILE.py:FUNCTION.")
]
DebugLlm = Annotated[
    str | None, typer.Option("--debug-llm", metavar="true|false", help="Keep requests and answers in the run's folder.")
]
Stream = Annotated[str | None, typer.Option("--stream", metavar="true|false", help="Stream the model's text.")]
Yes = Annotated[
    bool, typer.Option("--yes", help="Allow all commands, writes and skills that no rule denies, without asking.")
]
Answers = Annotated[
    list[str] | None, typer.Option("--resume-answer", help="name=value for a question of the run; repeatable.")
]
Events = Annotated[bool, typer.Option("--events", help="Show every event, also on a terminal.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the conclusion as JSON instead of events.")]
Turns = Annotated[int | None, typer.Option("--max-turns", min=1, help="Maximum number of model decisions.")]


@app.callback(invoke_without_command=True)
def options(
    version: Annotated[bool, typer.Option("--version", help="Show the version.", is_eager=True)] = False,
) -> None:
    """Options before any command."""
    if version:
        from fireswarm.settings.packaged import __version__

        typer.echo(f"fireswarm {__version__}")
        raise typer.Exit
    set_aside_left()  # before anything of a folder is read


@app.command()
def run(
    task: Annotated[
        str,
        typer.Argument(help="The task, in words. Piped input is added to it; `-` is that alone.", show_default=False),
    ] = "",
    config_file: ConfigFile = None,
    skills_dir: SkillsDir = None,
    skill: Annotated[str | None, typer.Option("--skill", help="Use this skill.")] = None,
    context: Annotated[
        list[str] | None, typer.Option("--context", help="key=value of the task's context; repeatable.")
    ] = None,
    profile: Profile = None,
    provider: ProviderOption = None,
    model: ModelName = None,
    script: Script = None,
    debug_llm: DebugLlm = None,
    dry_run: Annotated[
        str, typer.Option("--dry-run", metavar="true|false", help="Compose the prompt without calling a model.")
    ] = "false",
    show_prompt: Annotated[bool, typer.Option("--show-prompt", help="Print the exact first request and exit.")] = False,
    stream: Stream = None,
    max_turns: Turns = None,
    yes: Yes = False,
    go_on: Annotated[
        bool, typer.Option("--continue", help="Send the task as a message to the newest run, which continues.")
    ] = False,
    answer: Answers = None,
    events: Events = False,
    as_json: AsJson = False,
) -> None:
    """Run one task."""
    with without_collector():
        from fireswarm.cli.agent import run

    from fireswarm.cli.agent.model_of_run import ModelOptions
    from fireswarm.cli.agent.standard_input import task_with_input

    options = ModelOptions(provider, model, script)
    load = _loader(config_file, profile, stream, max_turns, debug_llm)
    if go_on:
        settings = options.settings_for(_folder_of_run("latest", config_file), load)
        task = task_with_input(task, settings.model)
        code = run.go_on(
            settings, "latest", skills_dir or (), as_json=as_json, message=task, answers=answer, yes=yes, events=events
        )
        raise typer.Exit(code)
    settings = load(options.values())
    task = task_with_input(task, settings.model)
    task_given = run.task_of(task, skill, context, dry_run=_yes("--dry-run", dry_run), yes=yes)
    if show_prompt:
        raise typer.Exit(run.show_prompt(settings, task_given, skills_dir or ()))
    raise typer.Exit(
        run.run_once(
            settings, task_given, skills_dir or (), as_json=as_json, answers=answer, events=events, options=options
        )
    )


@app.command()
def resume(
    run_id: Annotated[str, typer.Argument(help="A run's id, or latest.", show_default=False)],
    config_file: ConfigFile = None,
    skills_dir: SkillsDir = None,
    answer: Answers = None,
    message: Annotated[
        str, typer.Option("--message", help="Message to the run: a reply to its answer, or to stopped work.")
    ] = "",
    profile: Profile = None,
    provider: ProviderOption = None,
    model: ModelName = None,
    script: Script = None,
    max_turns: Turns = None,
    yes: Yes = False,
    events: Events = False,
    as_json: AsJson = False,
) -> None:
    """Continue a run that was interrupted, waits for an answer, or has ended.

    Finished actions are not repeated. The run keeps its model unless an option names another one.
    """
    from fireswarm.cli.agent import run
    from fireswarm.cli.agent.model_of_run import ModelOptions

    load = _loader(config_file, profile, None, max_turns)
    settings = ModelOptions(provider, model, script).settings_for(_folder_of_run(run_id, config_file), load)
    code = run.go_on(
        settings, run_id, skills_dir or (), as_json=as_json, message=message, answers=answer, yes=yes, events=events
    )
    raise typer.Exit(code)


@app.command()
def chat(
    config_file: ConfigFile = None,
    skills_dir: SkillsDir = None,
    session: Annotated[
        str, typer.Option("--session", help="Name of the conversation; an existing one is continued.")
    ] = "default",
    profile: Profile = None,
    provider: ProviderOption = None,
    model: ModelName = None,
    script: Script = None,
    max_turns: Turns = None,
    yes: Yes = False,
) -> None:
    """Run tasks in a chat; the agent remembers earlier ones."""
    from fireswarm.agent.chat import run_of_session
    from fireswarm.cli.agent import run
    from fireswarm.cli.agent.model_of_run import ModelOptions

    options = ModelOptions(provider, model, script)
    load = _loader(config_file, profile, None, max_turns)
    folder = run_of_session(kept_runs(Path.cwd()), session)
    settings = load(options.values()) if folder is None else options.settings_for(folder, load)
    raise typer.Exit(run.chat(settings, session, skills_dir or (), yes=yes, options=options))


@app.command()
def replay(
    run_id: Annotated[str, typer.Argument(help="A run's id, or latest.", show_default=False)],
    config_file: ConfigFile = None,
    event_stream: Annotated[bool, typer.Option("--event-stream", help="Show every event as in the live run.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the events as JSON.")] = False,
) -> None:
    """Print a past run."""
    from fireswarm.cli.agent.replay import replay_run
    from fireswarm.settings import load_found_settings

    settings = load_found_settings(config_file, Path.cwd(), home_folder())
    replay_run(settings, run_id, event_stream=event_stream, as_json=as_json)


@app.command("runs")
def list_runs(
    limit: Annotated[int, typer.Option("--limit", min=1, help="Maximum number of runs.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print the runs as JSON.")] = False,
) -> None:
    """List the runs of this folder, the newest first."""
    from fireswarm.cli.agent.replay import print_runs

    print_runs(limit, as_json=as_json)


@app.command()
def trust(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Settings files, AGENTS.md, or folders of skills; default: agent.yaml and swarm.yaml of this folder.",
            show_default=False,
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Only print what the trust would allow.")] = False,
) -> None:
    """Trust a folder's settings files and skills with their current content: they may start programs and name servers.

    It prints what it allows, and the hash of the content. Trust it again after each change.
    """
    from fireswarm.cli.agent.trust import trust_each

    chosen = files or [path for name in ("agent.yaml", "swarm.yaml") if (path := Path(name)).is_file()]
    if not chosen:
        raise InvalidInput("this folder has neither agent.yaml nor swarm.yaml: name the file to trust")
    trust_each(chosen, home_folder(), only_show=show)


@config.command("init")
def init(
    file: Annotated[Path, typer.Option("--file", help="Path of the new file.")] = Path("agent.yaml"),
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write agent.yaml with every key, its default and its description."""
    from fireswarm.settings import AgentSettings
    from fireswarm.settings.sample import sample

    if file.exists() and not force:
        raise InvalidInput(f"{file} exists: give another --file, or --force to replace it")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(sample(AgentSettings), encoding="utf-8")
    typer.echo(f"wrote {file}; API keys are read from the environment, never from this file")


@config.command("validate")
def validate(
    file: Annotated[
        Path | None, typer.Option("--file", help="File to check; default: the file that `agent run` would use.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the effective settings.")] = False,
) -> None:
    """Check a settings file and report all errors with their lines."""
    from fireswarm.settings import find_agent_file, load_agent_settings

    path = find_agent_file(file, Path.cwd(), home_folder())
    settings = load_agent_settings(path)
    if as_json:
        from fireswarm.cli.shared.console import json_text

        sys.stdout.write(json_text(settings.model_dump(mode="json")) + "\n")
    else:
        typer.echo(f"{path or 'built-in defaults'}: valid ({settings.model.provider}, {settings.model.model_name})")


def _loader(
    config_file: Path | None,
    profile: str | None,
    stream: str | None,
    max_turns: int | None,
    debug_llm: str | None = None,
) -> Callable[[dict[str, Any]], AgentSettings]:
    """Return a function that loads the settings file and applies the given options, and further values."""
    from fireswarm.settings import load_found_settings

    given: Mapping[str, Any] = {
        "runtime.profile": profile,
        "model.stream": None if stream is None else _yes("--stream", stream),
        "runtime.max_turns": max_turns,
        "logging.debug_llm_bodies": None if debug_llm is None else _yes("--debug-llm", debug_llm),
    }
    return lambda values: load_found_settings(config_file, Path.cwd(), home_folder(), {**given, **values})


def _folder_of_run(run_id: str, config_file: Path | None) -> Path:
    """Return the folder of a run. Raises NotFound and InvalidInput.

    It does not depend on the model, so that it works without a complete model configuration.
    """
    from fireswarm.runs.sinks.files import run_folder

    neutral = {"model.provider": "anthropic", "model.name": ""}
    logs = Path.cwd() / _loader(config_file, None, None, None)(neutral).logging.jsonl_dir
    return run_folder(kept_runs(Path.cwd()), run_id, logs)


def _yes(option: str, word: str) -> bool:
    if word.lower() not in ("true", "false"):
        raise ConfigError(f"{option} {word!r}: use true or false")
    return word.lower() == "true"


def with_values(arguments: Sequence[str]) -> list[str]:
    """Give switches without a value the value ``true``: ``--dry-run`` and ``--dry-run true`` are the same."""
    spelled: list[str] = []
    for number, word in enumerate(arguments):
        spelled.append(word)
        following = arguments[number + 1].lower() if number + 1 < len(arguments) else ""
        if word in SWITCHES and following not in ("true", "false"):
            spelled.append("true")
    return spelled


def main() -> None:
    """Entry point: known errors are printed on standard error, with exit code 1."""
    with report_errors(OSError):
        app(with_values(sys.argv[1:]))
