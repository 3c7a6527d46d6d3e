"""``swarm state``: create the tables of an installed store of conversations, and remove expired conversations."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from fireswarm.cli.shared.options import Project, Root, StoreUri, console, run_async, settings_for
from fireswarm.client import Swarm
from fireswarm.contracts.base import count_noun
from fireswarm.contracts.ports import MigratedStore

app = typer.Typer(help="Maintain the stored conversations of skills: migrate, prune.", no_args_is_help=True)


@app.command()
def migrate(root: Root = Path()) -> None:
    """Create or extend the tables in the database of DATABASE_URL. Safe to repeat."""
    from fireswarm.clocks import ServerClock
    from fireswarm.swarm.opening.open_conversations import IN_STORE, open_installed

    settings = settings_for(root, None)
    contexts = None if settings.state.backend == IN_STORE else open_installed(settings, ServerClock())
    if not isinstance(contexts, MigratedStore):
        console.print(f"nothing to do: STATE_STORE_BACKEND is {settings.state.backend}, which needs no tables")
        return

    async def main() -> int:
        try:
            return await contexts.migrate()
        finally:
            await contexts.close()

    steps = run_async(main)
    console.print(f"created {count_noun(steps, 'step')}" if steps else "nothing to do: the tables are up to date")


@app.command()
def prune(
    days: Annotated[
        float, typer.Option("--days", min=0, help="Also remove conversations that expire within this many days.")
    ] = 0.0,
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
) -> None:
    """Remove conversations that have expired."""

    async def main() -> int:
        async with Swarm.open(settings=settings_for(root, store, project), create=False) as swarm:
            assert swarm.parts.conversations is not None
            return await swarm.parts.conversations.prune(swarm.parts.clock.now() + timedelta(days=days))

    console.print(f"removed {count_noun(run_async(main), 'conversation')}")
