"""Fixtures for your tests: a swarm in memory whose time moves only when the test advances it.

Loaded by pytest as a plugin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from fireswarm.client import Swarm
    from fireswarm.clocks import VirtualClock
    from fireswarm.skills.functions import FunctionSkill


class OpenSwarm(Protocol):
    """Opens a swarm with the given roles; see ``Swarm.local``."""

    def __call__(
        self, roles: Mapping[str, Sequence[FunctionSkill | str]] | None = None
    ) -> AbstractAsyncContextManager[Swarm]:
        """Open the swarm and run its roles until the block ends."""
        ...


@pytest.fixture
def virtual_clock() -> VirtualClock:
    """A clock that moves only by ``await virtual_clock.advance(seconds)``."""
    from fireswarm.clocks import VirtualClock

    return VirtualClock()


@pytest.fixture
def local_swarm(virtual_clock: VirtualClock) -> OpenSwarm:
    """Return a function that opens a swarm in memory on the virtual clock, for ``async with``.

    Leases, back-offs and deadlines pass only when the test advances the clock. No model is called.
    """

    def open_local(
        roles: Mapping[str, Sequence[FunctionSkill | str]] | None = None,
    ) -> AbstractAsyncContextManager[Swarm]:
        from fireswarm.client import Swarm
        from fireswarm.settings import load_settings

        settings = load_settings(Path.cwd(), environment={}, overrides={"worker.think": "never"})
        return Swarm.local(roles, settings=settings, clock=virtual_clock)

    return open_local
