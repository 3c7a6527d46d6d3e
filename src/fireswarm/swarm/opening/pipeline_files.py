"""Find the data files and the pipelines of a swarm: those of its own folder, then the packaged ones."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fireswarm.pipelines.loading import FOLDER, Pipelines, load_pipelines
from fireswarm.settings import Settings
from fireswarm.settings.packaged import packaged_path
from fireswarm.skills.packs.catalog import Catalog
from fireswarm.swarm.records.policy import HandoffPolicy


def data_path(settings: Settings, name: str, names: frozenset[str] | None = None) -> Path:
    """Return a data folder or file of the user's repository, if it is one of *names*, else the packaged one."""
    own = settings.path(name)
    return own if (names is None or name in names) and own.exists() else packaged_path(name)


def find_pipelines(
    settings: Settings, names: frozenset[str] | None, catalog: Catalog, roles: Iterable[str], policy: HandoffPolicy
) -> tuple[Pipelines, Catalog]:
    """Return the pipelines, and the catalog with the skills that plan them.

    Of the swarm's folder only *names* are used, if they are given: code may make others later.
    """
    return load_pipelines(pipeline_folders(settings, names), catalog, roles, policy.route_fault)


def pipeline_folders(settings: Settings, names: frozenset[str] | None = None) -> list[Path]:
    """Return the folders with the files of pipelines, in the order of the search."""
    own = [settings.path(FOLDER)] if names is None or FOLDER in names else []
    return [*own, *([packaged_path(FOLDER)] if settings.skills.builtin else [])]
