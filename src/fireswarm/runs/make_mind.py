"""Build a mind: a model and the objects that its calls use."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from fireswarm.contracts.limits import MAX_KEPT_OUTPUT_BYTES
from fireswarm.contracts.ports import ChatModel, Clock, Store
from fireswarm.errors import ConfigError, MissingApiKey
from fireswarm.llm.budget import Ledger
from fireswarm.mind.mind import Mind
from fireswarm.processes.confinement.process_limits import MEGABYTE, ProcessLimits
from fireswarm.processes.confinement.view import named_environment
from fireswarm.processes.shell import Shell
from fireswarm.processes.startup import without_collector
from fireswarm.redaction import Redactor, secret_values
from fireswarm.runs.model_clients import ModelClients
from fireswarm.settings import AgentSettings
from fireswarm.settings.packaged import packaged_path
from fireswarm.settings.run_folders import add_named_places
from fireswarm.settings.trust import TrustedFiles, digest_of, trusts_all
from fireswarm.skills.packs.cache import default_cache
from fireswarm.skills.packs.catalog import Catalog, load_catalog
from fireswarm.skills.packs.discovery import DiscoveryLimits, agent_places, require_folders
from fireswarm.skills.routing.rerank import Reranker
from fireswarm.skills.routing.router import Router

PROTOCOL_FILE = "PROTOCOL.md"
"""Prompt file with the form of an answer, for a model without native tool calls."""
TOOLS_FILE = "TOOLS.md"
"""Prompt file with the way of working, for every model."""
ADVISOR_FILE = "ADVISOR.md"
AGENT_FILE = "AGENT.md"


def redactor_for(settings: AgentSettings, environment: Mapping[str, str] | None = None) -> Redactor:
    """Return a redactor for the values of all environment variables that hold credentials."""
    named = settings.model.providers.key_variables
    return Redactor(secret_values(os.environ if environment is None else environment, named))


def make_mind(
    settings: AgentSettings,
    catalog: Catalog,
    clock: Clock,
    root: Path,
    *,
    environment: Mapping[str, str] | None = None,
    store: Store | None = None,
    ledger: Ledger | None = None,
    model: ChatModel | None = None,
    asks: bool = True,
    home: Path | None = None,
) -> Mind:
    """Build a mind. Without a key it has a reason instead of a client; with ``asks`` False it has no model.

    With a *store*, all processes on it share the provider's rate limits. For *home* see `prompt_file`.
    """
    env = os.environ if environment is None else environment
    redact = redactor_for(settings, env)
    client, clients, no_model = None, None, "worker.think is never"
    if asks:
        protocol = prompt_file(root / "roles", PROTOCOL_FILE, home)
        clients = ModelClients(settings, root, env, clock, redact, protocol, store, ledger, model)
        try:
            client = clients.open(settings.model)
        except MissingApiKey as error:
            no_model = str(error)
    runtime = settings.runtime
    limits = ProcessLimits(runtime.max_memory_mb * MEGABYTE, runtime.max_processes, runtime.max_disk_mb * MEGABYTE)
    environment = named_environment(env, runtime.pass_environment)
    shell = Shell.of(runtime.shell_linux, runtime.shell_windows, MAX_KEPT_OUTPUT_BYTES, environment, limits)
    reranker = make_reranker(settings, env) if asks and settings.skills.reranker == "gemini" else None
    return Mind(settings, catalog, Router(catalog), shell, redact, client, no_model, reranker, clients)


def make_reranker(settings: AgentSettings, environment: Mapping[str, str]) -> Reranker:
    """Return Gemini's re-ranker. Raises ConfigError without its key."""
    gemini = settings.model.providers.gemini
    key = environment.get(gemini.api_key_env, "").strip()
    if not key:
        raise ConfigError(f"skills.reranker is gemini, but {gemini.api_key_env} is not set: set it, or choose none")
    with without_collector():
        from fireswarm.llm.providers.embeddings import EmbeddingReranker, GeminiEmbedder
    return EmbeddingReranker(GeminiEmbedder(settings.skills.reranker_model, key, gemini.base_url))


async def close_model(mind: Mind) -> None:
    """Close the connections of the models from ``make_mind``."""
    if mind.clients is not None:
        await mind.clients.close()


def agent_catalog(settings: AgentSettings, root: Path, home: Path, given: Iterable[Path] = ()) -> Catalog:
    """Return the stand-alone agent's skills: those of *given*, of the user, of the folder *root*, and the packaged.

    For equal names the earlier one counts. Skills of *root* are material until the user trusts their files. Skills that
    only a swarm can run are left out.
    """
    skills, given = settings.skills, tuple(given)
    require_folders(given, root)
    add_named_places(*(root / path for path in (*given, *skills.dirs) if root / path != root / "skills"))
    packaged = packaged_path("skills") if skills.builtin else None
    searched = agent_places(given, skills.dirs, root, home, packaged)
    limits = DiscoveryLimits(skills.max_depth, skills.max_folders)
    cache = default_cache(searched.folders)
    catalog = load_catalog(searched.folders, limits=limits, cache=cache).without_swarm()
    own, trusted = searched.find_own(limits), TrustedFiles(home)
    material = {
        name: replace(skill, is_material=True)
        for name, skill in catalog.skills.items()
        if os.path.realpath(skill.folder) not in own and not trusted.has_folder(skill.folder)
    }
    return replace(catalog, skills={**catalog.skills, **material})


def prompt_file(roles: Path, name: str, home: Path | None = None) -> str:
    """Return a shared prompt of ``roles/``, such as PROTOCOL.md: the user's file, or else the packaged one.

    With *home*, the file may come with a folder of a stranger: it counts only if that user trusts its content.
    """
    own = roles / name
    content = own.read_bytes() if own.is_file() else None
    if content is None or not (home is None or trusts_all() or TrustedFiles(home).has(own, digest_of(content))):
        content = (packaged_path("roles") / name).read_bytes()
    return content.decode("utf-8").strip()
