"""The table of the results, and the line of JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmarks.agent_tasks.chosen_model import Chosen
from benchmarks.agent_tasks.runner import Result

MAX_REASON_CHARS = 300


def print_table(results: Sequence[Result], chosen: Chosen, planned: int, console: Console) -> None:
    """Print a row for each run, and what they come to."""
    table = Table(title=_title(chosen), title_justify="left", header_style="bold")
    several = any(result.run > 1 for result in results)
    table.add_column("task", no_wrap=True)
    for name in ("turns", "tokens in", "out", "cached", "USD", "s"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("result", overflow="fold")
    for result in results:
        usage = result.usage
        table.add_row(
            f"{result.task} {result.run}" if several else result.task,
            *(f"{count:,}" for count in (usage.turns, usage.input_tokens, usage.output_tokens, usage.cached_tokens)),
            format_money(usage.usd),
            f"{result.seconds:.1f}",
            Text("passed", "green") if result.passed else Text(describe_reason(result), "red"),
        )
    console.print(table)
    passed = sum(result.passed for result in results)
    missing = f"; {planned - len(results)} did not run to their end" if planned > len(results) else ""
    console.print(f"{passed} of {len(results)} passed{missing}", highlight=False)
    for note in chosen.notes:
        console.print(note, style="yellow", highlight=False, markup=False, soft_wrap=True)


def figures(results: Sequence[Result], chosen: Chosen, planned: int) -> dict[str, Any]:
    """Return what the line of JSON holds. Tokens and USD are those of all runs."""
    return {
        "answers": "recorded by hand" if chosen.settings is None else "of a model",
        "provider": chosen.provider,
        "model": chosen.model,
        "planned": planned,
        "runs": len(results),
        "passed": sum(result.passed for result in results),
        "turns": sum(result.usage.turns for result in results),
        "input_tokens": sum(result.usage.input_tokens for result in results),
        "output_tokens": sum(result.usage.output_tokens for result in results),
        "cached_tokens": sum(result.usage.cached_tokens for result in results),
        "usd": sum_known([result.usage.usd for result in results]),
        "seconds": round(sum(result.seconds for result in results), 1),
        "tasks": [describe_run(result) for result in results],
    }


def describe_run(result: Result) -> dict[str, Any]:
    """Return what the line of JSON holds of one run."""
    usage = result.usage
    return {
        "task": result.task,
        "run": result.run,
        "passed": result.passed,
        "reasons": [reason[:MAX_REASON_CHARS] for reason in result.reasons],
        "turns": usage.turns,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "usd": None if usage.usd is None else round(usage.usd, 6),
        "seconds": result.seconds,
        "tools": dict(sorted(result.tools.items())),
    }


def _title(chosen: Chosen) -> str:
    return "agent tasks, recorded answers" if chosen.settings is None else f"agent tasks, {chosen.model}"


def describe_reason(result: Result) -> str:
    """Return in one line why a run failed."""
    more = len(result.reasons) - 1
    told = " ".join(result.reasons[0].split())[:MAX_REASON_CHARS]
    return f"failed: {told}{f' (and {more} more)' if more else ''}"


def format_money(usd: float | None) -> str:
    """Return an amount for the table."""
    return "-" if usd is None else f"{usd:.4f}"


def sum_known(values: Sequence[float | None]) -> float | None:
    """Return the sum, or None if an amount is not known."""
    known = [value for value in values if value is not None]
    return round(sum(known), 6) if len(known) == len(values) else None
