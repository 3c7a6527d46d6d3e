"""The table of the results, a row for each objective with both ways side by side, and the line of JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmarks.agent_tasks.chosen_model import Chosen
from benchmarks.agent_tasks.report import describe_reason, describe_run, format_money, sum_known
from benchmarks.agent_tasks.runner import Result
from benchmarks.team_tasks.task import TeamTask

GOALS = {"independent": (0.6, 1.5), "dependent": (1.2, 1.2)}
"""At most these shares of the agent's wall time and of its uncached tokens, by how the parts hang together."""

WAYS = ("agent", "swarm")


@dataclass(frozen=True, slots=True)
class Row:
    """An objective and its runs."""

    task: TeamTask
    results: Sequence[Result]

    def of(self, way: str) -> list[Result]:
        """Return the runs of one way."""
        return [result for result in self.results if result.way == way]

    def mean(self, way: str, figure: str) -> float:
        """Return the mean of a figure over the runs of a way, 0 without runs."""
        return fmean(_figure(result, figure) for result in found) if (found := self.of(way)) else 0.0

    def ratio(self, figure: str) -> float | None:
        """Return the swarm's share of the agent's figure, or None if a way is missing."""
        agent, swarm = (self.mean(way, figure) for way in WAYS)
        return round(swarm / agent, 2) if agent and swarm else None

    @property
    def reaches_goal(self) -> bool:
        """True if both ways pass and both shares are within the goals."""
        shares = (self.ratio("seconds"), self.ratio("uncached"))
        within = (share is not None and share <= most for share, most in zip(shares, self.goals, strict=True))
        return all(within) and all(result.passed for result in self.results)

    @property
    def goals(self) -> tuple[float, float]:
        return GOALS[self.task.file.parts]


def rows_of(tasks: Sequence[TeamTask], results: Sequence[Result]) -> list[Row]:
    """Return a row for each objective that was run."""
    rows = [Row(task, [result for result in results if result.task == task.name]) for task in tasks]
    return [row for row in rows if row.results]


def print_table(rows: Sequence[Row], chosen: Chosen, delay_seconds: float, console: Console) -> None:
    """Print a row for each objective, the agent's figure before the swarm's, and why runs failed."""
    with_model = chosen.settings is not None
    title = chosen.model if with_model else f"recorded answers, {delay_seconds:g} s a call"
    table = Table(title=f"team tasks, {title}: agent / swarm", title_justify="left", header_style="bold")
    table.add_column("objective", no_wrap=True)
    table.add_column("parts", no_wrap=True)
    table.add_column("passed", no_wrap=True)
    for name in ("calls", "uncached", "cached", "USD", "s", "time", "tokens"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("goal")
    for row in rows:
        table.add_row(*_cells(row))
    console.print(table)
    for result in (result for row in rows for result in row.results if not result.passed):
        console.print(Text(f"{result.task} by the {result.way} {describe_reason(result)}", "red"))
    for note in chosen.notes:
        console.print(note, style="yellow", highlight=False, markup=False, soft_wrap=True)


def _cells(row: Row) -> list[str | Text]:
    passed = " / ".join("yes" if all(each.passed for each in row.of(way)) else "no" for way in WAYS if row.of(way))
    counts = [" / ".join(f"{row.mean(way, name):,.0f}" for way in WAYS) for name in ("calls", "uncached", "cached")]
    money = " / ".join(format_money(sum_known([each.usage.usd for each in row.of(way)])) for way in WAYS)
    seconds = " / ".join(f"{row.mean(way, 'seconds'):.1f}" for way in WAYS)
    shares = [f"{row.ratio(name) or 0:.2f}" for name in ("seconds", "uncached")]
    time, tokens = row.goals
    goal = Text(f"{time:g}, {tokens:g}", "green" if row.reaches_goal else "red")
    return [row.task.name, row.task.file.parts, passed, *counts, money, seconds, *shares, goal]


def figures(rows: Sequence[Row], chosen: Chosen, delay_seconds: float) -> dict[str, Any]:
    """Return what the line of JSON holds."""
    results = [result for row in rows for result in row.results]
    return {
        "answers": "recorded by hand" if chosen.settings is None else "of a model",
        "provider": chosen.provider,
        "model": chosen.model,
        "delay_seconds": delay_seconds if chosen.settings is None else None,
        "runs": len(results),
        "passed": sum(result.passed for result in results),
        "goals_reached": sum(row.reaches_goal for row in rows),
        "usd": sum_known([result.usage.usd for result in results]),
        "objectives": [_of_row(row) for row in rows],
    }


def _of_row(row: Row) -> dict[str, Any]:
    return {
        "objective": row.task.name,
        "parts": row.task.file.parts,
        "time_share": row.ratio("seconds"),
        "uncached_share": row.ratio("uncached"),
        "reaches_goal": row.reaches_goal,
        "runs": [
            {"way": result.way, "worked_seconds": result.worked_seconds, **describe_run(result)}
            for result in row.results
        ],
    }


def _figure(result: Result, name: str) -> float:
    usage = result.usage
    match name:
        case "seconds":
            return result.worked_seconds
        case "calls":
            return usage.turns
        case "cached":
            return usage.cached_tokens
        case _:
            return usage.input_tokens - usage.cached_tokens
