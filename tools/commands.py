"""Generate docs/reference/commands.md: every command with its help text and an example that a test runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from fireswarm.cli.agent.main import app as agent_app
from fireswarm.cli.swarm.main import app as swarm_app

PROGRAMS: dict[str, Any] = {"swarm": swarm_app, "agent": agent_app}

LONG = "# until Ctrl+C"
"""Marks an example that runs until it is interrupted; the test of the page does not run it."""

EXAMPLES: dict[str, str] = {
    "swarm demo": "swarm demo notes",
    "swarm init": "swarm init my-swarm",
    "swarm up": f"swarm up --roles scout,memory --replicas scout=2  {LONG}",
    "swarm role": f"swarm role scout --concurrency 2  {LONG}",
    "swarm submit": "swarm submit 'count the words' --role scout --skill noop --context path=notes --effort low",
    "swarm tasks": "swarm tasks --status queued",
    "swarm show": "swarm show $TASK",
    "swarm watch": f"swarm watch $TASK  {LONG}",
    "swarm cancel": "swarm cancel $TASK",
    "swarm retry": "swarm retry $BLOCKED",
    "swarm schedule set": "swarm schedule set report '0 6 * * 1-5' 'count the words' --role scout --skill noop "
    "--timezone Europe/Berlin",
    "swarm schedule list": "swarm schedule list",
    "swarm schedule pause": "swarm schedule pause report",
    "swarm schedule resume": "swarm schedule resume report",
    "swarm schedule run": "swarm schedule run report",
    "swarm schedule remove": "swarm schedule remove report",
    "swarm budget": "swarm budget $BLOCKED --usd 5",
    "swarm answer": "swarm answer $ASKING path=notes",
    "swarm approve": "swarm approve $APPROVING --question 1-1",
    "swarm say": "swarm say $DENYING 'look at the numbers of 2026 too'",
    "swarm fork": "swarm fork $BLOCKED --before 1 --say 'count them by hand'",
    "swarm plan": "swarm plan $PLANNED",
    "swarm deny": "swarm deny $DENYING --question 1-1 --reason 'not on a Friday'",
    "swarm runs": "swarm runs --role scout --limit 5",
    "swarm agents": "swarm agents --json",
    "swarm pause": "swarm pause executor --reason 'the disk is full'",
    "swarm resume": "swarm resume executor",
    "swarm drain": "swarm drain executor",
    "swarm mail": "swarm mail",
    "swarm memory": "swarm memory --bucket notes",
    "swarm memory recall": "swarm memory recall 'which database'",
    "swarm memory history": "swarm memory history $FACT",
    "swarm memory wrong": "swarm memory wrong $FACT --reason 'we moved in March'",
    "swarm memory correct": "swarm memory correct $FACT 'PostgreSQL 17'",
    "swarm memory forget": "swarm memory forget $FACT --yes",
    "swarm cost": "swarm cost",
    "swarm doctor": "swarm doctor",
    "swarm artifacts": "swarm artifacts $DONE --to artifacts",
    "swarm open": "swarm open $DONE report.md",
    "swarm capabilities": "swarm capabilities",
    "swarm api": f"swarm api --port 8090  {LONG}",
    "swarm console": f"swarm console --port 8091  {LONG}",
    "swarm mcp": f"swarm mcp --port 8092  {LONG}",
    "swarm a2a": f"swarm a2a --port 8093  {LONG}",
    "swarm pipeline demo": f"swarm pipeline demo  {LONG}",
    "swarm pipeline new": "swarm pipeline new words",
    "swarm pipeline list": "swarm pipeline list",
    "swarm pipeline check": "swarm pipeline check words",
    "swarm pipeline show": "swarm pipeline show words",
    "swarm pipeline run": "swarm pipeline run words --input path=notes/garden.md --no-wait",
    "swarm pipeline resume": "swarm pipeline resume $RUN --from words-count --no-wait",
    "swarm pipeline trace": "swarm pipeline trace run/trace_map.json",
    "swarm pipeline report": "swarm pipeline report run",
    "swarm store serve": f"swarm store serve --port 8080  {LONG}",
    "swarm store stats": "swarm store stats",
    "swarm store backup": "swarm store backup store.backup",
    "swarm store restore": "swarm store restore store.backup --overwrite",
    "swarm store export": "swarm store export documents.jsonl",
    "swarm store import": "swarm store import documents.jsonl --overwrite",
    "swarm store reset": "swarm store reset --yes",
    "swarm state migrate": "swarm state migrate",
    "swarm state prune": "swarm state prune --days 7",
    "swarm skills list": "swarm skills list",
    "swarm skills inspect": "swarm skills inspect workspace-inventory --show-sections",
    "swarm skills check": "swarm skills check my-swarm/skills",
    "swarm skills bench": "swarm skills bench prompts.json --skills-dir my-swarm/skills",
    "agent run": "agent run 'list the Markdown files here' --dry-run true",
    "agent resume": "agent resume latest --script answers.json",
    "agent chat": f"agent chat --session notes --script answers.json  {LONG}",
    "agent replay": "agent replay latest --event-stream",
    "agent runs": "agent runs --limit 5",
    "agent config init": "agent config init",
    "agent config validate": "agent config validate --file agent.yaml",
    "agent trust": "agent trust agent.yaml",
    "agent capabilities": "agent capabilities sandbox --json",
    "agent skills list": "agent skills list --skills-dir my-swarm/skills",
    "agent skills inspect": "agent skills inspect workspace-inventory --show-frontmatter",
    "agent skills check": "agent skills check my-swarm/skills",
    "agent skills bench": "agent skills bench prompts.json --skills-dir my-swarm/skills",
}


def reference() -> str:
    """Return the page's generated part."""
    return "\n\n".join(_section(name, command) for name, command in leaves())


def leaves() -> Iterator[tuple[str, Any]]:
    """Yield every command that can be called, by its full name."""
    for program, app in PROGRAMS.items():
        yield from _below(program, get_command(app))


def _below(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if inner is None or name in EXAMPLES:
        yield name, command
    for word, below in (inner or {}).items():
        yield from _below(f"{name} {word}", below)


def _section(name: str, command: Any) -> str:
    lines = [f"## {name}", "", " ".join((command.help or "").split()), "", "```console", EXAMPLES[name], "```"]
    rows = [_row(parameter) for parameter in command.params if parameter.name != "help"]
    if rows:
        lines += ["", "| | default | meaning |", "| --- | --- | --- |", *rows]
    return "\n".join(lines)


def _row(parameter: Any) -> str:
    argument = parameter.param_type_name == "argument"
    name = f"`{parameter.name.upper()}`" if argument else ", ".join(f"`{opt}`" for opt in parameter.opts)
    default = parameter.default
    shown = "" if default in (None, (), [], "", False) or callable(default) else f"`{default}`"
    meaning = (getattr(parameter, "help", None) or "").replace("|", "\\|")
    return f"| {name} | {'required' if parameter.required else shown} | {meaning} |"
