"""Open the parts of a swarm inside a program: for a client, or with its roles in this process."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
from pydantic import ValidationError

from fireswarm.contracts.base import explain_validation
from fireswarm.contracts.ports import Clock
from fireswarm.contracts.swarm.role import RoleCard
from fireswarm.errors import ConfigError
from fireswarm.settings import Settings, load_settings
from fireswarm.skills.functions import FunctionSkill
from fireswarm.skills.packs.catalog import Catalog
from fireswarm.swarm.opening.open_parts import new_agent_id, open_parts
from fireswarm.swarm.opening.reload import Reloader
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.roles.card import check_models
from fireswarm.swarm.worker.loop import Refresh
from fireswarm.swarm.worker.role import RoleConfig, run
from fireswarm.swarm.worker.task_groups import task_group


@contextlib.asynccontextmanager
async def open_for_client(
    store: str | None,
    *,
    project: str | None,
    session: str | None,
    root: Path,
    settings: Settings | None,
    create: bool = True,
) -> AsyncGenerator[SwarmParts]:
    """Open a swarm whose roles run elsewhere; see ``client.Swarm.open``."""
    uri = store or ("firestore" if project is not None else None)
    chosen = _settings(root, settings, uri, project, session)
    if not create and chosen.store.uri == "embedded" and not chosen.path(chosen.store.data).exists():
        chosen = chosen.model_copy(update={"store": chosen.store.model_copy(update={"uri": "memory"})})
    async with open_parts(chosen) as parts:
        yield parts


@contextlib.asynccontextmanager
async def open_local(
    roles: Mapping[str, Sequence[FunctionSkill | str]] | None,
    *,
    store: str,
    session: str | None,
    root: Path,
    settings: Settings | None,
    clock: Clock | None,
) -> AsyncGenerator[SwarmParts]:
    """Open a swarm and run its roles in this process; see ``client.Swarm.local``."""
    settings = _settings(root, settings, store, None, session)
    with TemporaryDirectory(prefix="fireswarm-") as scratch:
        if store == "memory":  # delete everything at the end of the block
            blobs = settings.store.model_copy(update={"blobs": f"{scratch}/blobs"})
            settings = settings.model_copy(update={"store": blobs})
        own = settings if roles is None else settings.model_copy(update={"roles": {}})  # for those given here
        async with open_parts(own, thinks=True, clock=clock) as opened:
            parts = opened if roles is None else replace(_with_roles(opened, roles), settings=settings)
            check_models(settings, parts.roles)
            parts = replace(parts, workdir=Path(scratch) / "work")
            refresh = Reloader(parts).current if roles is None else None
            async with _roles_at_work(parts, parts.roles if roles is None else roles, refresh):
                yield parts


@contextlib.asynccontextmanager
async def _roles_at_work(parts: SwarmParts, names: Mapping[str, Any], refresh: Refresh | None) -> AsyncGenerator[None]:
    """Run the named roles in this process until the block ends."""
    stop = anyio.Event()
    async with task_group() as group:
        for name in names:
            group.start_soon(run, RoleConfig(parts, name, new_agent_id(name), stop, refresh))
        try:
            yield
        finally:
            stop.set()


def _with_roles(parts: SwarmParts, roles: Mapping[str, Sequence[FunctionSkill | str]]) -> SwarmParts:
    """Return the parts with only *roles*, and with those of their skills that are functions."""
    functions = {item.name: item for skills in roles.values() for item in skills if isinstance(item, FunctionSkill)}
    catalog = Catalog(
        {**parts.catalog.skills, **{name: item.listing() for name, item in functions.items()}},
        parts.catalog.left_out,
        parts.catalog.warned,
    )
    cards: dict[str, RoleCard] = {}
    for role, skills in roles.items():
        names = tuple(_skill_name(item, role, catalog) for item in skills)
        cards[role] = _card(role, names, parts.roles.get(role))
    return replace(
        parts,
        roles=cards,
        catalog=catalog,
        board=replace(parts.board, roles=frozenset(cards)),
        inline={**parts.inline, **{name: item.run for name, item in functions.items()}},
    )


def _skill_name(item: FunctionSkill | str, role: str, catalog: Catalog) -> str:
    """Return the name of a role's skill. Raises ConfigError for anything else, and NotFound for an unknown name."""
    if isinstance(item, FunctionSkill):
        return item.name
    given: Any = item
    if not isinstance(given, str):
        called = getattr(given, "__name__", repr(given))
        raise ConfigError(
            f"role {role!r}: {called} is not a skill: decorate it with @fireswarm.skill(NAME, DESCRIPTION)"
        )
    return catalog.get(given).name


def _card(role: str, skills: tuple[str, ...], known: RoleCard | None) -> RoleCard:
    if known is not None:
        return known.model_copy(update={"skills": skills or known.skills})
    try:
        return RoleCard(name=role, description=f"Runs {', '.join(skills) or 'a model'}.", skills=skills)
    except ValidationError as error:
        raise ConfigError(f"role {role!r} is not valid: {explain_validation(error)}") from error


def _settings(
    root: Path, settings: Settings | None, store: str | None, project: str | None, session: str | None
) -> Settings:
    """Load the settings of *root*, or copy *settings*, with the given store, project and session."""
    named = {"store.uri": store, "store.project": project, "session": session}
    overrides = {name: value for name, value in named.items() if value is not None}
    if settings is None:
        return load_settings(root, overrides=overrides)
    of_store = {name.removeprefix("store."): value for name, value in overrides.items() if name != "session"}
    update: dict[str, Any] = {"store": settings.store.model_copy(update=of_store)}
    if session is not None:
        update["session"] = session
    return settings.model_copy(update=update)
