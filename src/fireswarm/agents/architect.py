"""The architect: turns an objective into a task graph and reviews how it ended."""

from __future__ import annotations

from fireswarm.agents.role import RoleConfig

NAME = "architect"


async def run(cfg: RoleConfig) -> None:
    """Claim and work on this role's tasks until the process is told to stop."""
    await cfg.loop(NAME)
