"""Draw a request for approval: exactly what would run, and the change of a file."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from fireswarm.cli.shared.options import console as standard_output
from fireswarm.contracts.skills.skill import Question

_STYLES = (("+++", "bold"), ("---", "bold"), ("@@", "cyan"), ("+", "green"), ("-", "red"))


def draw_approval(asked: Question, console: Console = standard_output, always: str = "--always") -> None:
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
    for line in approval.diff.splitlines():
        style = next((style for start, style in _STYLES if line.startswith(start)), "dim")
        console.print(Text(f"    {line}", style=style), soft_wrap=True)
    if approval.rule:
        console.print(Text(f"  {always} allows {approval.rule}", style="dim"), soft_wrap=True)
