"""Imports what a role process needs. The fork server of ``swarm up`` loads this module once for all of them."""

from __future__ import annotations

import os
from importlib import import_module

from fireswarm.processes.forked import become_server
from fireswarm.processes.startup import freeze, loop_options, without_collector
from fireswarm.signals.exporting import modules_to_import

MODULES = (
    "anyio._backends._asyncio",
    "fireswarm.cli.swarm.main",
    "fireswarm.skills.running.execute",
    "fireswarm.storage.blobs",
    "fireswarm.storage.firestore.store",
    "fireswarm.swarm.opening.open_parts",
    "google.cloud.firestore",
    *(
        ["uvloop"] if loop_options()["use_uvloop"] else []
    ),  # this also sets the variables that gRPC reads when it is imported
    *modules_to_import(os.environ),
)

os.environ["TERM"] = "dumb"  # consoles are created on import; their output goes to logs, without colors
with without_collector():
    for name in MODULES:
        import_module(name)
freeze()
become_server()
