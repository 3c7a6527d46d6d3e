"""What each role adds to the shared turn: its own inputs, its own effects, and ``async def run(cfg)``."""

from collections.abc import Mapping

from fireswarm.agents import architect, executor, memory, predictor, scout
from fireswarm.agents.role import PLAIN, RoleConfig, RoleHooks

HOOKS: Mapping[str, RoleHooks] = {
    architect.NAME: PLAIN,
    scout.NAME: PLAIN,
    executor.NAME: PLAIN,
    predictor.NAME: PLAIN,
    memory.NAME: memory.HOOKS,
}

__all__ = ["HOOKS", "PLAIN", "RoleConfig", "RoleHooks"]
