"""Settings of model providers: access, limits and options."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from fireswarm.contracts.section import SettingsSection

ProviderName = Literal[
    "anthropic", "anthropic-vertex", "anthropic-bedrock", "gemini", "gemini-vertex", "openai", "scripted"
]
"""A provider is an API that serves models: the same model has other credentials and limits at another provider."""

DEFAULT_MODELS: dict[str, str] = {
    "anthropic": "claude-sonnet-5-5",
    "anthropic-vertex": "claude-sonnet-5-5",
    "gemini": "gemini-3.8-flash",
    "gemini-vertex": "gemini-3.8-flash",
    "scripted": "scripted",
}
"""Models used if ``model.name`` is not set: current in the SDKs of this version (2026-11).

Other providers have no default, since their model names depend on the endpoint or the region.
"""

ACCOUNT_PROVIDERS = frozenset({"anthropic-vertex", "gemini-vertex", "anthropic-bedrock"})
"""Providers that bill the account of the machine or of the user, without an API key."""

PLACE = r"^[a-z0-9][a-z0-9-]{0,62}$"
"""Part of the server's address, which gets the credentials, so dots and slashes are not allowed."""

PROJECT = r"^[a-z0-9][a-z0-9.:-]{0,99}$"


class ProviderSettings(SettingsSection):
    """Settings of one provider."""

    base_url: str | None = Field(default=None, description="base URL of the API, such as a gateway's")
    requests_per_minute: int | None = Field(
        default=None, ge=1, description="maximum calls per minute, over all processes"
    )
    tokens_per_minute: int | None = Field(
        default=None, ge=1, description="maximum tokens per minute, over all processes"
    )
    options: dict[str, Any] = Field(
        default_factory=dict, description="passed through to the provider: thinking, effort, temperature, ..."
    )


class AnthropicSettings(ProviderSettings):
    """Claude at Anthropic. The key is never in a file: ``api_key_env`` is the name of its variable."""

    api_key_env: str = Field(default="ANTHROPIC_API_KEY", description="environment variable that holds the API key")


class GeminiSettings(ProviderSettings):
    """Gemini at Google, by a key."""

    api_key_env: str = Field(default="GEMINI_API_KEY", description="environment variable that holds the API key")


class VertexSettings(ProviderSettings):
    """A model on Vertex AI, by Application Default Credentials."""

    project: str | None = Field(
        default=None,
        pattern=PROJECT,
        description="Google Cloud project; default: GOOGLE_CLOUD_PROJECT, else the credentials' project",
    )
    location: str | None = Field(
        default=None, pattern=PLACE, description="location of Vertex AI; default: GOOGLE_CLOUD_LOCATION, else global"
    )


class BedrockSettings(ProviderSettings):
    """Claude on Amazon Bedrock, by the credentials that AWS's own tools use."""

    region: str | None = Field(
        default=None, pattern=PLACE, description="AWS region; default: AWS_REGION, else the profile's"
    )


class OpenAiSettings(ProviderSettings):
    """OpenAI, or any endpoint with its chat completions: Ollama, vLLM, OpenRouter, a gateway."""

    base_url: str | None = Field(
        default=None, description="base URL of the endpoint, such as http://127.0.0.1:11434/v1; default: OpenAI's"
    )
    api_key_env: str | None = Field(
        default=None,
        description="environment variable that holds the API key; default: OPENAI_API_KEY, and with base_url no key",
    )

    @property
    def key_variable(self) -> str | None:
        """Name of the key's variable, or None if no key is sent: by default, OpenAI's key goes only to OpenAI."""
        return self.api_key_env or (None if self.base_url else "OPENAI_API_KEY")


class Providers(SettingsSection):
    """Settings by provider, under the provider's name."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"), populate_by_name=True)

    anthropic: AnthropicSettings = AnthropicSettings()
    anthropic_vertex: VertexSettings = VertexSettings()
    anthropic_bedrock: BedrockSettings = BedrockSettings()
    gemini: GeminiSettings = GeminiSettings()
    gemini_vertex: VertexSettings = VertexSettings()
    openai: OpenAiSettings = OpenAiSettings()

    def of(self, provider: str) -> ProviderSettings:
        """Return the settings of the provider with this name; ``scripted`` has none."""
        return ProviderSettings() if provider == "scripted" else getattr(self, provider.replace("-", "_"))

    @property
    def key_variables(self) -> tuple[str, ...]:
        """Names of all variables that hold keys."""
        named = (self.anthropic.api_key_env, self.gemini.api_key_env, self.openai.api_key_env, "OPENAI_API_KEY")
        return tuple(name for name in named if name)


def key_variable(settings: ProviderSettings) -> str | None:
    """Return the name of the variable with the key, or None if the provider needs no key. An empty name is an error."""
    if isinstance(settings, OpenAiSettings):
        return settings.key_variable
    return settings.api_key_env if isinstance(settings, (AnthropicSettings, GeminiSettings)) else None


def default_model(provider: str) -> str:
    """Return the default model of a provider, or "" if one must be named."""
    return DEFAULT_MODELS.get(provider, "")
