"""Files in a workspace, besides the protected names, that decide what programs outside of the confinement do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from fireswarm.processes.confinement.paths.named_by_git import find_named_by_git, find_tree
from fireswarm.processes.confinement.paths.names import INNER_PROTECTED
from fireswarm.settings.run_folders import STATE_FOLDER, named_places, places_on, swarm_folders

SWARM_NAMES = ("swarm.yaml", "agent.yaml", "roles", "skills", "capabilities", "mailbox", "schemas", ".agents")
"""Names in the folder of a swarm, which is the operator's also where it is a part of a larger workspace."""


def program_files(workspace: Path) -> list[Path]:
    """Return the places in *workspace*, without those that are also found by their names.

    They need not exist, and may be links: code may neither change what they lead to nor put others in their place.
    """
    found = dict.fromkeys([*named_places(), *_of_swarms(), *_of_programs(workspace), *find_named_by_git(workspace)])
    start = f"{workspace}/"
    return [place for place in found if str(place).startswith(start)]


def folders_around(workspace: Path) -> list[Path]:
    """Return the nearest repository, and the folders of swarms, of which *workspace* is only a part."""
    tree = find_tree(workspace)
    swarms = {folder.parent for folder in swarm_folders() if folder.name == STATE_FOLDER}
    found = [tree] if tree is not None and tree != workspace else []
    return [*found, *(above for above in workspace.parents if above in swarms and above != tree)]


def _of_programs(workspace: Path) -> Iterator[Path]:
    """Yield the places of `INNER_PROTECTED`, and the links on the way to them."""
    for parts in INNER_PROTECTED:
        place = workspace.joinpath(*parts)
        yield from places_on(place) if os.path.lexists(workspace / parts[0]) else (place,)


def _of_swarms() -> Iterator[Path]:
    """Yield the settings, roles, skills and programs of the swarms of this user."""
    for folder in swarm_folders():
        if folder.name == STATE_FOLDER:
            yield from (folder.parent / name for name in SWARM_NAMES)
