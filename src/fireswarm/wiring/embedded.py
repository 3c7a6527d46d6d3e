"""Open a swarm inside a program: as a client, or with its roles in this process."""

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
from fireswarm.swarm.swarm import Swarm
from fireswarm.swarm.worker.role import RoleConfig, run
from fireswarm.wiring.swarm import new_agent_id, open_swarm


@contextlib.asynccontextmanager
async def open_for_client(
    store: str | None, *, project: str | None, session: str | None, root: Path, settings: Settings | None
) -> AsyncGenerator[Swarm]:
    """Open a swarm whose roles run elsewhere; see ``Swarm.open``."""
    uri = store or ("firestore" if project is not None else None)
    async with open_swarm(_settings(root, settings, uri, project, session)) as swarm:
        yield swarm


@contextlib.asynccontextmanager
async def open_local(
    roles: Mapping[str, Sequence[FunctionSkill | str]] | None,
    *,
    store: str,
    session: str | None,
    root: Path,
    settings: Settings | None,
    clock: Clock | None,
) -> AsyncGenerator[Swarm]:
    """Open a swarm and run its roles in this process; see ``Swarm.local``."""
    settings = _settings(root, settings, store, None, session)
    with TemporaryDirectory(prefix="fireswarm-") as scratch:
        if store == "memory":  # delete everything at the end of the block
            blobs = settings.store.model_copy(update={"blobs": f"{scratch}/blobs"})
            settings = settings.model_copy(update={"store": blobs})
        async with open_swarm(settings, thinks=True, clock=clock) as opened:
            swarm = replace(opened if roles is None else _with_roles(opened, roles), workdir=Path(scratch) / "work")
            async with _roles_at_work(swarm, swarm.roles if roles is None else roles):
                yield swarm


@contextlib.asynccontextmanager
async def _roles_at_work(swarm: Swarm, names: Mapping[str, Any]) -> AsyncGenerator[None]:
    """Run the named roles in this process until the block ends."""
    stop = anyio.Event()
    async with anyio.create_task_group() as group:
        for name in names:
            group.start_soon(run, RoleConfig(swarm, name, new_agent_id(name), stop))
        try:
            yield
        finally:
            stop.set()


def _with_roles(swarm: Swarm, roles: Mapping[str, Sequence[FunctionSkill | str]]) -> Swarm:
    """Return the swarm with only *roles*, and with the functions among their skills."""
    functions = {item.name: item for skills in roles.values() for item in skills if isinstance(item, FunctionSkill)}
    catalog = Catalog(
        {**swarm.catalog.skills, **{name: item.listing() for name, item in functions.items()}},
        swarm.catalog.left_out,
        swarm.catalog.warned,
    )
    cards: dict[str, RoleCard] = {}
    for role, skills in roles.items():
        names = tuple(item.name if isinstance(item, FunctionSkill) else catalog.get(item).name for item in skills)
        cards[role] = _card(role, names, swarm.roles.get(role))
    return replace(
        swarm,
        roles=cards,
        catalog=catalog,
        board=replace(swarm.board, roles=frozenset(cards)),
        inline={**swarm.inline, **{name: item.run for name, item in functions.items()}},
    )


def _card(role: str, skills: tuple[str, ...], known: RoleCard | None) -> RoleCard:
    if known is not None:
        return known.model_copy(update={"skills": skills or known.skills})
    try:
        return RoleCard(name=role, description=f"Runs {', '.join(skills)}.", skills=skills)
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
    parts = {name.removeprefix("store."): value for name, value in overrides.items() if name != "session"}
    update: dict[str, Any] = {"store": settings.store.model_copy(update=parts)}
    if session is not None:
        update["session"] = session
    return settings.model_copy(update=update)
