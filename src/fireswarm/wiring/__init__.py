"""The composition root: the only place that names adapters.

``swarm`` puts the fleet's swarm together, ``minds`` a model and what its calls pass through, ``agent`` runs one task
without a store. The swarm's half is imported when something of it is used: the agent needs none of it, and
starts in half the time without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fireswarm.wiring.packaged import packaged_path

if TYPE_CHECKING:
    from fireswarm.wiring.swarm import (
        INDEXES_FILE,
        LOCAL_PROJECT,
        data_path,
        load_swarm,
        make_swarm,
        new_agent_id,
        open_client,
        open_database,
        open_swarm,
        serving,
    )

__all__ = [
    "INDEXES_FILE",
    "LOCAL_PROJECT",
    "data_path",
    "load_swarm",
    "make_swarm",
    "new_agent_id",
    "open_client",
    "open_database",
    "open_swarm",
    "packaged_path",
    "serving",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from fireswarm.wiring import swarm

    return getattr(swarm, name)
