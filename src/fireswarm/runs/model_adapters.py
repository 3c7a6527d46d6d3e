"""Choose and create the adapter of the configured model. SDKs are imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fireswarm.contracts.ports import ChatModel, Embedder
from fireswarm.errors import ConfigError, MissingApiKey
from fireswarm.llm.providers.scripted import ScriptedModel, load_script
from fireswarm.processes.startup import without_collector
from fireswarm.settings import AgentSettings
from fireswarm.settings.agent import ModelSettings
from fireswarm.settings.extras import install_command
from fireswarm.settings.run_folders import add_named_places
from fireswarm.settings.swarm import MemorySettings
from fireswarm.settings.untrusted import named_file


def key_for(settings: AgentSettings, environment: Mapping[str, str]) -> str:
    """Return the chosen provider's key, or "" if it needs none. Raises MissingApiKey with the variable's name."""
    provider = settings.model.provider
    name = settings.model.chosen.key_variable
    if name is None:
        return ""
    if not name:
        raise ConfigError(f"model.providers.{provider}.api_key_env must name a variable")
    key = environment.get(name, "").strip()
    if not key:
        raise MissingApiKey(
            f"{name} is not set, and {provider} needs it: export {name}=your_key, or choose another "
            "provider with --provider or model.provider"
        )
    return key


def make_model(settings: AgentSettings, root: Path, environment: Mapping[str, str], *, sends: bool = True) -> ChatModel:
    """Return the adapter for the configured model. Raises MissingApiKey or ConfigError.

    With ``sends`` False it can only preview requests, and needs neither a key nor an account.
    """
    model = settings.model
    if model.provider == "scripted":
        if not model.script:
            raise ConfigError("model.provider is scripted: model.script must name a .json file or FILE.py:FUNCTION")
        add_named_places(root / named_file(model.script))
        return ScriptedModel(load_script(model.script, root), model.model_name)
    check_installed(model, sends=sends)
    key = key_for(settings, environment) if sends else "not sent"
    with without_collector():
        return _load(model.chosen.adapter)(model, key, environment, sends)


def embedding_model(
    settings: AgentSettings, memory: MemorySettings, environment: Mapping[str, str]
) -> ModelSettings | None:
    """Return the settings of the embedding model with which memory is searched, or None if there is none.

    With ``auto``, a provider without embeddings, a key or a usual model is no fault.
    """
    by_itself = memory.embeddings == "auto"
    provider = settings.model.provider if by_itself else memory.embeddings
    if memory.embeddings == "none" or not settings.model.providers.of(provider).embedder:
        return None
    chosen = settings.model.model_copy(update={"provider": provider, "effort": None, "fallback": ()})
    model = chosen.model_copy(update={"name": memory.embedding_model or chosen.chosen.usual_embedding})
    if by_itself:
        try:
            _require_embeddings(settings, model, environment)
        except (ConfigError, MissingApiKey):
            return None
    return model


def open_embedder(
    settings: AgentSettings, model: ModelSettings, environment: Mapping[str, str], dimensions: int
) -> Embedder:
    """Return the model of ``embedding_model``; its vectors have *dimensions* numbers.

    Raises MissingApiKey and ConfigError.
    """
    key = _require_embeddings(settings, model, environment)
    with without_collector():
        return _load(model.chosen.embedder)(model, model.name, key, environment, dimensions)


def _require_embeddings(settings: AgentSettings, model: ModelSettings, environment: Mapping[str, str]) -> str:
    """Return the key of an embedding model. Raises MissingApiKey and ConfigError."""
    if not model.name:
        raise ConfigError(f"memory.embedding_model must name the embedding model of {model.chosen.base_url}")
    check_installed(model)
    return key_for(settings.model_copy(update={"model": model}), environment)


def check_installed(model: ModelSettings, *, sends: bool = True) -> None:
    """Raise ConfigError with the command that installs what the provider needs."""
    chosen = model.chosen
    needed = chosen.modules if sends or not chosen.access else ()
    if missing := [module for module in needed if find_spec(module) is None]:
        raise ConfigError(f"provider {model.provider} needs {' and '.join(missing)}: {install_command(chosen.extra)}")


def describe_access(settings: AgentSettings, environment: Mapping[str, str]) -> str:
    """Return how the chosen model is accessed. Raises MissingApiKey or ConfigError with what is missing."""
    model, chosen = settings.model, settings.model.chosen
    check_installed(model)
    where = f" at {chosen.base_url}" if chosen.base_url else ""
    if chosen.access:
        return f"{_load(chosen.access)(model, environment)}{where}"
    key_for(settings, environment)
    return (f"key in {chosen.key_variable}" if chosen.key_variable else "no key") + where


def _load(place: str) -> Callable[..., Any]:
    """Return the function that ``module:function`` names below the providers."""
    module, _, function = place.partition(":")
    return getattr(import_module(f"fireswarm.llm.providers.{module}"), function)
