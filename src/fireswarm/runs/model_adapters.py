"""Choose and create the adapter of the configured model. SDKs are imported on first use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fireswarm.contracts.ports import ChatModel
from fireswarm.errors import ConfigError, MissingApiKey
from fireswarm.llm.providers.scripted import ScriptedModel, load_script
from fireswarm.processes.startup import without_collector
from fireswarm.settings import AgentSettings
from fireswarm.settings.agent import ModelSettings
from fireswarm.settings.providers import PLACE, BedrockSettings, VertexSettings, key_variable

LIBRARIES = {"openai": ("openai",), "anthropic-bedrock": ("boto3", "botocore")}
"""Modules that a provider needs from an extra."""

EXTRAS = {"openai": "openai", "anthropic-bedrock": "bedrock"}


def key_for(settings: AgentSettings, environment: Mapping[str, str]) -> str:
    """Return the chosen provider's key, or "" if it needs none. Raises MissingApiKey with the variable's name."""
    provider = settings.model.provider
    name = key_variable(settings.model.chosen)
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
        return ScriptedModel(load_script(model.script, root), model.model_name)
    check_installed(model.provider, sends=sends)
    key = key_for(settings, environment) if sends else "not sent"
    with without_collector():
        match model.provider:
            case "anthropic":
                from fireswarm.llm.providers.anthropic import AnthropicModel

                return AnthropicModel.direct(model.model_name, key, **_common(model))
            case "gemini":
                from fireswarm.llm.providers.gemini import GeminiModel

                return GeminiModel(model.model_name, key, **_common(model))
            case "openai":
                from fireswarm.llm.providers.openai import OpenAiModel

                return OpenAiModel(model.model_name, key or None, **_common(model))
            case "anthropic-bedrock":
                return _on_bedrock(model, environment, sends)
            case "anthropic-vertex" | "gemini-vertex":
                return _on_vertex(model, environment, sends)


def check_installed(provider: str, *, sends: bool = True) -> None:
    """Raise ConfigError with the command that installs what the provider needs."""
    needed = LIBRARIES.get(provider, ()) if sends or provider == "openai" else ()
    if missing := [module for module in needed if find_spec(module) is None]:
        raise ConfigError(
            f"provider {provider} needs {' and '.join(missing)}: pip install 'fireswarm[{EXTRAS[provider]}]'"
        )


def vertex_place(settings: VertexSettings, environment: Mapping[str, str]) -> tuple[str | None, str]:
    """Return the project, if there is one, and the location. Raises ConfigError for an invalid location."""
    location = settings.location or environment.get("GOOGLE_CLOUD_LOCATION", "").strip() or "global"
    if not re.fullmatch(PLACE, location):
        raise ConfigError(f"GOOGLE_CLOUD_LOCATION is {location!r}: use the name of a location, such as europe-west1")
    return settings.project or environment.get("GOOGLE_CLOUD_PROJECT", "").strip() or None, location


def _common(model: ModelSettings) -> dict[str, Any]:
    return {
        "base_url": model.chosen.base_url,
        "timeout_seconds": model.request_timeout_seconds,
        "options": model.chosen.options,
    }


def _on_vertex(model: ModelSettings, environment: Mapping[str, str], sends: bool) -> ChatModel:
    """Return Claude or Gemini on Vertex AI."""
    from fireswarm.llm.providers.google_access import google_access

    assert isinstance(model.chosen, VertexSettings)
    project, location = vertex_place(model.chosen, environment)
    access = google_access(model.provider, project, location, sends=sends)
    if model.provider == "gemini-vertex":
        from fireswarm.llm.providers.gemini import GeminiModel

        return GeminiModel(model.model_name, None, access=access, **_common(model))
    from fireswarm.llm.providers.anthropic_platforms import claude_on_vertex

    return claude_on_vertex(model.model_name, access, **_common(model))


def _on_bedrock(model: ModelSettings, environment: Mapping[str, str], sends: bool) -> ChatModel:
    """Return Claude on Amazon Bedrock."""
    from fireswarm.llm.providers.anthropic_platforms import claude_on_bedrock

    assert isinstance(model.chosen, BedrockSettings)
    bearer = environment.get("AWS_BEARER_TOKEN_BEDROCK", "").strip() or None
    return claude_on_bedrock(model.model_name, model.chosen.region, bearer, sends=sends, **_common(model))


def describe_access(settings: AgentSettings, environment: Mapping[str, str]) -> str:
    """Return how the chosen model is accessed. Raises MissingApiKey or ConfigError with what is missing."""
    model, chosen = settings.model, settings.model.chosen
    check_installed(model.provider)
    where = f" at {chosen.base_url}" if chosen.base_url else ""
    if isinstance(chosen, VertexSettings):
        from fireswarm.llm.providers.google_access import google_access

        access = google_access(model.provider, *vertex_place(chosen, environment))
        kind = type(access.credentials).__module__.removeprefix("google.")
        return f"Google credentials ({kind}), project {access.project}, location {access.location}{where}"
    if isinstance(chosen, BedrockSettings):
        from fireswarm.llm.providers.aws_access import find_region

        bearer = bool(environment.get("AWS_BEARER_TOKEN_BEDROCK"))
        region = find_region(model.provider, chosen.region, signs=not bearer)
        return f"{'AWS_BEARER_TOKEN_BEDROCK' if bearer else 'AWS credentials'}, region {region}{where}"
    key_for(settings, environment)
    name = key_variable(chosen)
    return (f"key in {name}" if name else "no key") + where
