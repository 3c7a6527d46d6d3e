"""Load roles, skills and capabilities again when their files change, so that a fix applies to the next turn."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio.to_thread

from fireswarm.capabilities import drop_in
from fireswarm.errors import FireswarmError
from fireswarm.skills.routing.router import Router
from fireswarm.swarm.opening.open_parts import load_swarm, own_names, watched_folders
from fireswarm.swarm.parts import SwarmParts

LOOK_SECONDS = 1.0
"""Shortest time between two looks at the files."""

_log = logging.getLogger(__name__)

Stamp = tuple[tuple[str, int, int], ...]


@dataclass(slots=True)
class Reloader:
    """Holds the parts of a process, and replaces them when a file of a role, skill or capability has changed.

    Files that cannot be read leave the last good parts in use. A folder of roles, skills or capabilities that was not
    in the swarm's folder at the start is not used: a command that works there could make it.
    """

    parts: SwarmParts
    names: frozenset[str] = field(init=False)
    stamp: Stamp = ()
    looked_at: float = float("-inf")

    def __post_init__(self) -> None:
        """Note what the swarm's folder has at the start."""
        self.names = own_names(self.parts.settings)

    async def current(self, at_once: bool) -> SwarmParts:
        """Return the parts for the next turn. Unless *at_once*, the files are looked at every `LOOK_SECONDS` only."""
        now = self.parts.clock.now().timestamp()
        if not at_once and now - self.looked_at < LOOK_SECONDS:
            return self.parts
        first, self.looked_at = self.looked_at == float("-inf"), now
        stamp = await anyio.to_thread.run_sync(self._stamp)
        if stamp != self.stamp:
            self.stamp = stamp
            if not first:
                await anyio.to_thread.run_sync(self._load)
        return self.parts

    def _stamp(self) -> Stamp:
        files = [skill.path for skill in self.parts.catalog.skills.values()]
        return tuple(_stamps([*watched_folders(self.parts.settings, self.names), *drop_in.files(), *files]))

    def _load(self) -> None:
        parts = self.parts
        try:
            roles, catalog, _, pipelines = load_swarm(parts.settings, self.names)
        except (FireswarmError, OSError) as error:
            _log.warning("a changed file cannot be used, the last good ones stay in use: %s", error)
            return
        mind = parts.mind and replace(parts.mind, catalog=catalog, router=Router(catalog))
        board = replace(parts.board, roles=frozenset(roles))
        self.parts = replace(parts, roles=roles, catalog=catalog, mind=mind, board=board, pipelines=pipelines)
        _log.info("roles, skills and capabilities were loaded again")


def _stamps(places: list[Path]) -> Iterator[tuple[str, int, int]]:
    """Yield name, time of change and size of each place, and of what a folder has in it."""
    for place in places:
        try:
            stat = os.stat(place)  # noqa: PTH116 - a Path's own method takes four times as long
            yield str(place), stat.st_mtime_ns, stat.st_size
            if place.is_dir():
                for entry in sorted(os.scandir(place), key=lambda entry: entry.name):
                    found = entry.stat()
                    yield entry.path, found.st_mtime_ns, found.st_size
        except OSError:
            continue
