"""Cost of models, summed over runs by objective, role and model.

A run's document counts each real call of that run once, whatever was resumed or replayed, so a plain sum over
runs is the amount paid.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.markup import escape

from fireswarm.cli.shared.options import clip, console, count_noun, short, table
from fireswarm.contracts.swarm.run import Run
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import RUNS, task_path
from fireswarm.storage.documents.read import parse_readable, parse_run_snapshot
from fireswarm.swarm.swarm import Swarm

COUNTS = (
    "calls",
    "tokens",
    "input_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "output_tokens",
    "thinking_tokens",
    "usd",
    "unpriced_calls",
)
"""Summed counters; ``output_tokens`` include thinking, ``input_tokens`` are those at full price."""

SHOWN_OBJECTIVES = 20
COLUMNS = ("calls", "tokens in", "cached", "tokens out", "thinking", "USD", "without price")


class Total:
    """Sum of the usage of runs."""

    def __init__(self) -> None:
        self.counts: dict[str, float] = dict.fromkeys(COUNTS, 0)

    def add(self, usage: Mapping[str, Any]) -> None:
        """Add the usage of one run."""
        for name in COUNTS:
            value = usage.get(name)
            if isinstance(value, (int, float)):
                self.counts[name] += value

    def cells(self) -> tuple[str, ...]:
        """Return the cells of a row: all prompt tokens, and how many of them came from the provider's cache."""
        count = self.counts
        read = count["input_tokens"] + count["cached_tokens"] + count["cache_write_tokens"]
        tokens = (read, count["cached_tokens"], count["output_tokens"], count["thinking_tokens"])
        return (
            f"{count['calls']:,}",
            *(f"{number:,}" for number in tokens),
            f"{count['usd']:.4f}",
            f"{count['unpriced_calls']:,}",
        )

    def fields(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return {**self.counts, "usd": round(self.counts["usd"], 6)}


@dataclass(slots=True)
class Spending:
    """Sums over the newest runs. ``more`` is true if there are older runs that were not read."""

    runs: int
    more: bool
    total: Total = field(default_factory=Total)
    by_objective: dict[str, Total] = field(default_factory=dict)
    by_role: dict[str, Total] = field(default_factory=dict)
    by_model: dict[str, Total] = field(default_factory=dict)
    objectives: dict[str, str] = field(default_factory=dict)

    def add(self, run: Run) -> None:
        """Add one run; a run without model calls adds nothing."""
        if not run.usage.get("calls"):
            return
        model = f"{run.usage.get('provider', '?')} {run.usage.get('model', '?')}"
        named = ((self.by_objective, run.chain_id), (self.by_role, run.role), (self.by_model, model))
        for sums, name in named:
            sums.setdefault(name, Total()).add(run.usage)
        self.total.add(run.usage)

    def fields(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return {
            "runs": self.runs,
            "more_runs": self.more,
            "total": self.total.fields(),
            "by_objective": [
                {"chain_id": name, "objective": self.objectives.get(name, ""), **total.fields()}
                for name, total in sort_by_cost(self.by_objective)
            ],
            "by_role": {name: total.fields() for name, total in sort_by_cost(self.by_role)},
            "by_model": {name: total.fields() for name, total in sort_by_cost(self.by_model)},
        }


def sort_by_cost(sums: Mapping[str, Total]) -> list[tuple[str, Total]]:
    """Sort by cost, highest first; without a price, by tokens."""
    return sorted(sums.items(), key=lambda item: (-item[1].counts["usd"], -item[1].counts["tokens"], item[0]))


async def read_spending(swarm: Swarm, limit: int, session: str | None = None) -> Spending:
    """Sum the newest *limit* runs, of one session if given."""
    query = queries.newest(RUNS, "started_at", limit + 1, session_hash=session)
    found = await swarm.store.query(query)
    spending = sum_runs(parse_readable(found[:limit], parse_run_snapshot), more=len(found) > limit)
    dearest = [name for name, _ in sort_by_cost(spending.by_objective)][:SHOWN_OBJECTIVES]
    for task in await swarm.store.get_many([task_path(name) for name in dearest]):
        spending.objectives[task.id] = str((task.data or {}).get("objective", ""))
    return spending


def sum_runs(runs: Iterable[Run], *, more: bool = False) -> Spending:
    """Sum *runs*."""
    listed = list(runs)
    spending = Spending(len(listed), more)
    for run in listed:
        spending.add(run)
    return spending


def draw(spending: Spending) -> None:
    """Print the spending as tables."""
    read = f"the newest {count_noun(spending.runs, 'run')}" if spending.more else count_noun(spending.runs, "run")
    if not spending.total.counts["calls"]:
        console.print(f"no model calls in {read}")
        return
    for title, sums in (("model", spending.by_model), ("role", spending.by_role)):
        rows = [(name, *total.cells()) for name, total in sort_by_cost(sums)]
        table(f"models, by {title}", [title, *COLUMNS], rows, none="")
    shown = sort_by_cost(spending.by_objective)
    rows = [
        (short(name), *total.cells(), escape(clip(spending.objectives.get(name, ""), 60)))
        for name, total in shown[:SHOWN_OBJECTIVES]
    ]
    table("models, by objective", ["task", *COLUMNS, "objective"], rows, none="")
    if len(shown) > SHOWN_OBJECTIVES:
        console.print(f"and {count_noun(len(shown) - SHOWN_OBJECTIVES, 'objective')} with lower cost: --json lists all")
    beyond = "; older runs were not read: raise --limit" if spending.more else ""
    count = spending.total.counts
    console.print(f"models: {count['usd']:.4f} USD for {count['calls']:,} calls in {read}{beyond}", soft_wrap=True)
    _say_unpriced(sort_by_cost(spending.by_model))


def _say_unpriced(models: Sequence[tuple[str, Total]]) -> None:
    without = [name.partition(" ")[2] for name, total in models if total.counts["unpriced_calls"]]
    if without:
        console.print(f"no price for: {', '.join(without)}; set budget.prices", style="yellow", soft_wrap=True)
