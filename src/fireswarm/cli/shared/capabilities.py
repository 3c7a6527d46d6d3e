"""``swarm capabilities`` and ``agent capabilities``: list capabilities, or show one.

Their modules are imported when the command is called, so that ``--help`` is fast.
"""

from __future__ import annotations

from typing import Annotated

import typer


def capabilities(
    name: Annotated[
        str | None, typer.Argument(help="One capability: its settings and tools.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List all capabilities, or show one."""
    from fireswarm.cli.shared import capabilities_run

    if name is None:
        capabilities_run.list_all(as_json=as_json)
    else:
        capabilities_run.show(name, as_json=as_json)
