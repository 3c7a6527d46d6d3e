"""What each role adds to the shared turn: its own inputs, its own effects, and ``async def run(cfg)``."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from fireswarm.agents import architect, executor, memory, predictor, scout
from fireswarm.agents.role import PLAIN, RoleConfig, RoleHooks, run

RUNNERS: Mapping[str, Callable[[RoleConfig], Awaitable[None]]] = {
    module.NAME: module.run for module in (architect, executor, memory, predictor, scout)
}
HOOKS: Mapping[str, RoleHooks] = {memory.NAME: memory.HOOKS}


def runner(role: str) -> Callable[[RoleConfig], Awaitable[None]]:
    """The ``run(cfg)`` of a role; a role written by a user has the plain one."""
    return RUNNERS.get(role) or partial(run, role)


__all__ = ["HOOKS", "PLAIN", "RoleConfig", "RoleHooks", "runner"]
