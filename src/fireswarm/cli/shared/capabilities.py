"""``swarm capabilities`` and ``agent capabilities``: list capabilities, or show one.

Their modules are imported when the command is called, so that ``--help`` is fast.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fireswarm.cli.shared.options import Root


def capabilities(
    name: Annotated[
        str | None,
        typer.Argument(help="One capability or tool: its settings and tools, or inputs.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List the agent's own tools and all capabilities, or show one."""
    from fireswarm.cli.shared import capabilities_run

    own = capabilities_run.own_tools(Path.cwd())
    if name is None:
        capabilities_run.list_all(as_json=as_json, tools=own)
    elif name in own:
        capabilities_run.show_tool(own[name], as_json=as_json)
    else:
        capabilities_run.show(name, as_json=as_json)


def of_folder(
    name: Annotated[
        str | None, typer.Argument(help="One capability: its settings and tools.", show_default=False)
    ] = None,
    root: Root = Path(),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List all capabilities, those of the swarm's folder included, or show one."""
    from fireswarm.capabilities import drop_in
    from fireswarm.cli.shared import capabilities_run
    from fireswarm.settings.load import require_root

    drop_in.add_folder(require_root(root))
    if name is None:
        capabilities_run.list_all(as_json=as_json)
    else:
        capabilities_run.show(name, as_json=as_json)
