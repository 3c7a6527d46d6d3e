"""Open the configured store and build the parts of the swarm on it.

The embedded store is one file. The first process opens it; other processes read from the file's lock at which address
that process serves it. Google's client and the embedded store are imported on first use: the import takes most of a
second, and ``swarm --help`` needs neither.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from firelite.errors import DataFileInUse
from fireswarm.clocks import ServerClock, VirtualClock
from fireswarm.contracts.ports import Clock, Store
from fireswarm.contracts.swarm.role import RoleCard
from fireswarm.errors import ConfigError, StoreUnavailable
from fireswarm.llm.spend import StoreLedger
from fireswarm.pipelines.loading import Pipelines
from fireswarm.processes.confinement.container import hide_environment
from fireswarm.runs.make_mind import ADVISOR_FILE, TOOLS_FILE, close_model, make_mind, prompt_file, redactor_for
from fireswarm.runs.model_adapters import check_installed
from fireswarm.settings import Settings
from fireswarm.settings.load import home_folder
from fireswarm.settings.packaged import packaged_path
from fireswarm.settings.run_folders import STATE_FOLDER, add_swarm_folders
from fireswarm.signals.exporting import exporting
from fireswarm.skills.packs.cache import default_cache
from fireswarm.skills.packs.catalog import Catalog, load_catalog
from fireswarm.skills.packs.discovery import places
from fireswarm.storage.memory import Memory
from fireswarm.swarm.board import Board, BoardRules
from fireswarm.swarm.opening.embedded_store import open_when_free, standing_by
from fireswarm.swarm.opening.fact_vectors import fact_vectors
from fireswarm.swarm.opening.open_conversations import open_contexts
from fireswarm.swarm.opening.pipeline_files import data_path, find_pipelines, pipeline_folders
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.records.heartbeats import Heartbeats
from fireswarm.swarm.records.mailbox import Mailbox
from fireswarm.swarm.records.policy import HandoffPolicy
from fireswarm.swarm.roles.card import check_models, load_roles

if TYPE_CHECKING:
    from google.cloud.firestore_v1 import AsyncClient


EMULATOR_VARIABLE = "FIRESTORE_EMULATOR_HOST"
LOCAL_PROJECT = "fireswarm-local"
"""Project id on firelite and on Google's emulator, unless the settings name another one."""

CONNECT_SECONDS = 3.0
CONNECT_PAUSE_SECONDS = 0.1
"""Pause between attempts to connect. CONNECT_SECONDS is the maximum time for a served store to start listening."""


def own_names(settings: Settings) -> frozenset[str]:
    """Return the names in the swarm's folder. Names that code makes there later are not used before the next start."""
    return frozenset(os.listdir(settings.path(".")))  # noqa: PTH208 - names only


def local_project(settings: Settings) -> str:
    """Return the project id of the documents in a local store. Neither firelite nor Google's emulator checks it."""
    return settings.store.project or LOCAL_PROJECT


def new_agent_id(role: str) -> str:
    """Return a random agent id. A restarted process gets a new one, so it cannot reuse a lease."""
    return f"{role}-{socket.gethostname()[:24]}-{uuid.uuid4().hex[:8]}"


def load_swarm(
    settings: Settings, names: frozenset[str] | None = None
) -> tuple[dict[str, RoleCard], Catalog, HandoffPolicy, Pipelines]:
    """Read role cards, skills, the handoff policy and pipelines. Raises ConfigError with the file and the key.

    Of the swarm's folder only *names* are used, if they are given: those at the start, see `own_names`.
    """
    add_swarm_folders(settings.path(STATE_FOLDER))
    if (names is None or "capabilities" in names) and settings.path("capabilities").is_dir():
        from fireswarm.capabilities import drop_in

        drop_in.add_folder(settings.path("."))
    roles = load_roles(data_path(settings, "roles", names))
    check_models(settings, roles)
    folders = _skill_folders(settings, names)
    catalog = load_catalog(folders, cache=default_cache(folders))
    policy = HandoffPolicy.load(data_path(settings, "mailbox", names) / "policy.yaml")
    pipelines, catalog = find_pipelines(settings, names, catalog, roles, policy)
    return roles, catalog, policy, pipelines


def _skill_folders(settings: Settings, names: frozenset[str] | None = None) -> tuple[Path, ...]:
    root, packaged = settings.path("."), packaged_path("skills") if settings.skills.builtin else None
    found = places((), root, home_folder(), packaged)
    if names is None:
        return found
    return tuple(path for path in found if not path.is_relative_to(root) or path.relative_to(root).parts[0] in names)


def watched_folders(settings: Settings, names: frozenset[str] | None = None) -> list[Path]:
    """Return the folders in which roles, skills, pipelines and capabilities are found."""
    roles = data_path(settings, "roles", names)
    cards = [path.parent for path in sorted(roles.glob("*/ROLE.md"))]
    own = [*pipeline_folders(settings, names), settings.path("capabilities")]
    return [roles, *cards, *own, *_skill_folders(settings, names)]


def make_parts(
    settings: Settings, store: Store, clock: Clock, *, seed: int | None = None, thinks: bool = False
) -> SwarmParts:
    """Build the parts of a swarm on an open store; with *thinks*, include a mind, which role processes need."""
    from fireswarm.storage.blobs import FsspecBlobs

    roles, catalog, policy, pipelines = load_swarm(settings)
    rules = BoardRules(
        lease_seconds=settings.leases.lease_seconds,
        backoff_base_seconds=settings.leases.backoff_base_seconds,
        backoff_max_seconds=settings.leases.backoff_max_seconds,
        aging_seconds=settings.queue.aging_seconds,
        max_queued=settings.queue.max_queued,
        message_ttl_seconds=policy.retention_days * 86_400,
    )
    root = settings.store.blobs
    ledger = StoreLedger(store, clock, settings.session, uuid.uuid4().hex[:12])
    asks = settings.worker.think == "auto"
    if thinks and asks:
        for name, card in roles.items():
            check_installed(settings.model_of(name, card))
    mind = make_mind(settings, catalog, clock, settings.root, store=store, ledger=ledger, asks=asks) if thinks else None
    return SwarmParts(
        settings=settings,
        store=store,
        clock=clock,
        blobs=FsspecBlobs(root if "://" in root else str(settings.path(root))),
        board=Board(store, clock, frozenset(roles), rules, random.Random(seed)),
        mailbox=Mailbox(store, clock, policy),
        memory=Memory(store, clock, settings.shared_project, fact_vectors(settings, store, clock, ledger, thinks)),
        heartbeats=Heartbeats(store, clock),
        roles=roles,
        catalog=catalog,
        workdir=settings.path(".fireswarm/work"),
        processes=anyio.CapacityLimiter(settings.worker.concurrency),
        mind=mind,
        protocol=prompt_file(data_path(settings, "roles"), TOOLS_FILE),
        conversations=open_contexts(settings, store, clock),
        advisor=prompt_file(data_path(settings, "roles"), ADVISOR_FILE),
        pending=ledger,
        pipelines=pipelines,
    )


@contextlib.asynccontextmanager
async def open_parts(
    settings: Settings, *, thinks: bool = False, clock: Clock | None = None
) -> AsyncGenerator[SwarmParts]:
    """Open the configured store and yield the swarm's parts on it; with *thinks*, include a mind for roles.

    *clock* replaces the clock that follows the store's time. An embedded store then uses this clock as well.
    """
    from fireswarm.storage.firestore.store import FirestoreStore

    if "container" in (settings.runtime.confinement, settings.backbone.confinement):
        hide_environment()
    nanoseconds = clock.nanoseconds if isinstance(clock, VirtualClock) else None
    clock = clock or ServerClock()
    redact = redactor_for(settings)
    async with open_client(settings, nanoseconds=nanoseconds) as client, exporting(redact):
        parts = make_parts(settings, FirestoreStore(client, clock, redact), clock, thinks=thinks)
        try:
            yield parts
        finally:
            if parts.conversations is not None:
                await parts.conversations.close()
            if parts.mind is not None:
                await close_model(parts.mind)


@contextlib.asynccontextmanager
async def open_client(
    settings: Settings, *, nanoseconds: Callable[[], int] | None = None
) -> AsyncGenerator[AsyncClient]:
    """Yield the official client, connected to the configured store."""
    from firelite.wire.inprocess import connect
    from fireswarm.storage.firestore.channel import close

    uri = settings.store.uri
    async with contextlib.AsyncExitStack() as stack:
        if uri in ("embedded", "memory"):
            try:
                database = stack.enter_context(await open_when_free(settings, nanoseconds))
            except DataFileInUse as held:
                uri = await stack.enter_async_context(standing_by(settings, held))
            else:
                yield connect(database, project=local_project(settings), database=settings.store.database)
                return
        served = uri.startswith("firelite://")
        client = await _emulator_client(uri, settings) if served else _cloud_client(uri, settings)
        stack.push_async_callback(close, client)
        yield client


async def _emulator_client(uri: str, settings: Settings) -> AsyncClient:
    """Return a client of an emulator at *uri*. Raises ConfigError or StoreUnavailable."""
    from google.cloud.firestore_v1 import AsyncClient

    host = uri.removeprefix("firelite://")
    name, _, port = host.rpartition(":")
    if host.startswith("unix:"):
        await _check_reachable(host, partial(anyio.connect_unix, host.removeprefix("unix:").removeprefix("//")))
    elif name and port.isdecimal():
        await _check_reachable(host, partial(anyio.connect_tcp, name.strip("[]"), int(port)))
    else:
        raise ConfigError(f"store {uri!r} names no port: write firelite://127.0.0.1:8080")
    # The official client reads the emulator's address only from the environment, when it is created.
    before = os.environ.get(EMULATOR_VARIABLE)
    os.environ[EMULATOR_VARIABLE] = host
    try:
        return AsyncClient(project=local_project(settings), database=settings.store.database)
    finally:
        if before is None:
            del os.environ[EMULATOR_VARIABLE]
        else:
            os.environ[EMULATOR_VARIABLE] = before


async def _check_reachable(host: str, connect: Callable[[], Awaitable[Any]]) -> None:
    """Raise StoreUnavailable if no server listens: the client would retry for 30 s and not name the address."""
    with anyio.move_on_after(CONNECT_SECONDS):
        while True:
            try:
                await (await connect()).aclose()
            except OSError:
                await anyio.sleep(CONNECT_PAUSE_SECONDS)
            else:
                return
    raise StoreUnavailable(
        f"no server listens on {host}, the address of FIRESTORE_EMULATOR_HOST or --store: start the store there "
        "(`swarm store serve`, or `swarm up`, which prints its address), or omit the address"
    )


def _cloud_client(uri: str, settings: Settings) -> AsyncClient:
    """Return a client of Google Cloud's Firestore. Raises ConfigError for an unknown store or missing credentials."""
    if uri != "firestore":
        raise ConfigError(f"store {uri!r} is not known: use embedded, memory, firelite://HOST:PORT or firestore")
    if os.environ.get("FIRESTORE_EMULATOR_HOST"):
        raise ConfigError(
            "FIRESTORE_EMULATOR_HOST is set, so Google's client would connect to the emulator instead of Google "
            "Cloud: unset it, or omit --project and --store firestore"
        )
    from google.auth.exceptions import DefaultCredentialsError
    from google.cloud.firestore_v1 import AsyncClient

    try:
        return AsyncClient(project=settings.store.project, database=settings.store.database)
    except (DefaultCredentialsError, OSError) as error:
        raise ConfigError(
            f"no access to Google Cloud: {str(error).rstrip('. ')}. Run `gcloud auth application-default login`, "
            "and name the project with --project or GOOGLE_CLOUD_PROJECT."
        ) from error
