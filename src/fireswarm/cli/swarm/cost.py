"""Print what models cost: by objective, by role, by model; and raise a budget."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from fireswarm.cli.shared.options import Project, Root, Session, StoreUri, console, run_async, settings_for
from fireswarm.cli.shared.tables import cell, table
from fireswarm.client import Swarm
from fireswarm.contracts.base import count_noun
from fireswarm.contracts.limits import shown_id
from fireswarm.swarm.records.spending import Spending, Total, sort_by_cost

SHOWN_OBJECTIVES = 20
SCOPES = ("session", "day")
COLUMNS = ("calls", "uncached in", "cached in", "tokens out", "thinking", "USD", "without price")


def _cells(total: Total) -> tuple[str, ...]:
    """Return the cells of a row: calls, tokens, cost and unpriced calls.

    Tokens written to the cache count as uncached.
    """
    count = total.counts
    uncached = count["input_tokens"] + count["cache_write_tokens"]
    tokens = (uncached, count["cached_tokens"], count["output_tokens"], count["thinking_tokens"])
    return (
        f"{count['calls']:,}",
        *(f"{number:,}" for number in tokens),
        f"{count['usd']:.4f}",
        f"{count['unpriced_calls']:,}",
    )


def draw(spending: Spending) -> None:
    """Print the spend as tables."""
    read = f"the newest {count_noun(spending.runs, 'run')}" if spending.more else count_noun(spending.runs, "run")
    if not spending.total.counts["calls"]:
        console.print(f"no model calls in {read}")
        return
    for title, sums in (("model", spending.by_model), ("role", spending.by_role)):
        rows = [(name, *_cells(total)) for name, total in sort_by_cost(sums)]
        table(f"models, by {title}", [title, *COLUMNS], rows, none="")
    shown = sort_by_cost(spending.by_objective)
    rows = [
        (shown_id(name), *_cells(total), cell(spending.objectives.get(name, ""), 60))
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


def budget(
    target: Annotated[str, typer.Argument(help="Task id or a unique prefix of it; or session, or day.")],
    usd: Annotated[float | None, typer.Option("--usd", help="New budget in USD.")] = None,
    tokens: Annotated[int | None, typer.Option("--tokens", help="New budget in tokens.")] = None,
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
    session: Session = None,
) -> None:
    """Set the budget of an objective, a task, the session or the day. It applies at once, also to running tasks."""
    settings = settings_for(root, store, project, session)

    async def main() -> None:
        async with Swarm.open(settings=settings, create=target in SCOPES) as swarm:
            named = target if target in SCOPES else (await swarm.find(target)).task_id
            await swarm.budget(named, usd=usd, tokens=tokens)
            amounts = [f"{usd:g} USD"] if usd is not None else []
            amounts += [f"{tokens:,} tokens"] if tokens is not None else []
            console.print(f"the budget of {named} is {' and '.join(amounts)}", soft_wrap=True)

    run_async(main)
