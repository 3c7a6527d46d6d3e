"""The composition root: chooses the adapters and builds the objects that use them.

``swarm`` builds the fleet's swarm, ``model`` a model and the objects its calls pass through, ``conversations`` the
store of conversations. ``swarm`` is imported on first use, which halves the start time of the stand-alone agent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fireswarm.settings.packaged import packaged_path

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
        served_elsewhere,
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
    "served_elsewhere",
    "serving",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from fireswarm.wiring import swarm

    return getattr(swarm, name)
