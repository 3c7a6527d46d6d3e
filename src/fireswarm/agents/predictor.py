"""The predictor: scores and forecasts, with intervals."""

from __future__ import annotations

from fireswarm.agents.role import RoleConfig

NAME = "predictor"


async def run(cfg: RoleConfig) -> None:
    """Claim and work on this role's tasks until the process is told to stop."""
    await cfg.loop(NAME)
