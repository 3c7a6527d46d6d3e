"""Draw a request for approval: exactly what would run, and the change of a file."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from fireswarm.cli.shared.options import console as standard_output
from fireswarm.contracts.base import count_noun
from fireswarm.contracts.skills.permissions import PLAN_TOOL
from fireswarm.contracts.skills.skill import Question

SWARM = "--always"
"""Option of ``swarm approve`` that stores a decision for later calls."""

_STYLES = (("+++", "bold"), ("---", "bold"), ("@@", "cyan"), ("+", "green"), ("-", "red"))


def draw_approval(asked: Question, console: Console = standard_output, always: str = SWARM) -> None:
    """Print a request: its id, the tool, the reason, what would run, the diff, and what *always* would allow."""
    approval = asked.approval
    if approval is None:
        return
    number = f" {asked.id}" if asked.id else ""
    title = Text.assemble(
        (f"asks for approval{number}", "bold yellow"), f" of {approval.tool}, since {approval.because}:"
    )
    console.print(title, soft_wrap=True)
    for line in approval.shown.splitlines() or [""]:
        console.print(Text(f"    {line}", style="bold"), soft_wrap=True)
    for file in approval.files:
        console.print(Text(f"    with {file}", style="dim"), soft_wrap=True)
    if approval.changed:
        console.print("  it or its files changed since you were asked first", style="yellow")
    draw_diff(approval.diff, console)
    if approval.whole_diff and always == SWARM:
        console.print("  `swarm approve` without --question shows the whole change before it asks", style="dim")
    if approval.tool == PLAN_TOOL and always == SWARM:
        console.print("  `swarm plan ID --edit` changes the plan before it runs", style="dim")
    if approval.rule:
        scope = f" in {approval.folder}" if approval.folder else ""
        scope += f" for the role {approval.role}" if approval.role else ""
        console.print(Text(f"  {always} allows {approval.rule}{scope}", style="dim"), soft_wrap=True)


def draw_diff(diff: str, console: Console = standard_output, indent: str = "    ", most: int | None = None) -> None:
    """Print a unified diff, or *most* lines of it, with a color for each kind of line."""
    lines = diff.splitlines()
    for line in lines[:most]:
        style = next((style for start, style in _STYLES if line.startswith(start)), "dim")
        console.print(Text(f"{indent}{line}", style=style), soft_wrap=True)
    if most is not None and len(lines) > most:
        console.print(Text(f"{indent}… {count_noun(len(lines) - most, 'further line')}", "dim"))
