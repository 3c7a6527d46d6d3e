"""Settings of model providers: access, limits and options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast

from pydantic import AfterValidator, ConfigDict, Field

from fireswarm.contracts.base import SettingsSection

PLACE = r"^[a-z0-9][a-z0-9-]{0,62}$"
"""Part of the server's address, which gets the credentials, so dots and slashes are not allowed."""

PROJECT = r"^[a-z0-9][a-z0-9.:-]{0,99}$"

GEMINI_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")


_SCALARS = "temperature top_p top_k seed presence_penalty frequency_penalty effort reasoning_effort structured_output"

TUNING: Mapping[str, frozenset[str]] = {
    **{name: frozenset() for name in _SCALARS.split()},
    "thinking": frozenset(("type", "budget_tokens", "display")),
    "thinking_config": frozenset(("include_thoughts", "thinking_budget", "thinking_level")),
}
"""Options that only tune an answer, each with the keys of its map, if it may be one."""

_TASK, _INSTRUCTIONS = "the task itself", "AGENTS.md, or the text of a ROLE.md"
_FORMAT = "model.structured_output_mode"

_OF_FIRESWARM = {
    "model": "model.name",
    **dict.fromkeys(("messages", "contents"), _TASK),
    **dict.fromkeys(("system", "systeminstruction"), _INSTRUCTIONS),
    **dict.fromkeys(("maxtokens", "maxcompletiontokens", "maxoutputtokens"), "model.max_tokens"),
    **dict.fromkeys(("tools", "functions", "toolchoice", "functioncall", "toolconfig"), "capabilities"),
    **dict.fromkeys(("automaticfunctioncalling", "automaticcontinuation"), "runtime.max_turns"),
    **dict.fromkeys(("responseformat", "responsemimetype", "responseschema", "responsejsonschema"), _FORMAT),
    "outputformat": _FORMAT,
    "outputconfig": "model.effort",
    "stream": "model.stream",
    "timeout": "model.request_timeout_seconds",
}
"""What fireswarm itself sends to providers, without case and underscores, and what a person sets instead."""

_REMOVABLE = ("maxtokens", "maxcompletiontokens", "toolchoice", "responseformat")
"""Fields that some endpoints do not know: null removes them from requests of ``openai``."""

_BODIES = ("extrabody", "httpoptions", "generationconfig")
"""Options whose content the SDKs or the APIs join with the body of the request."""


def _check_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return *options*. Raises ValueError for one that would replace what fireswarm sends."""
    for name, value in options.items():
        plain = re.sub(r"[^a-z]", "", name.lower())
        instead = _OF_FIRESWARM.get(plain)
        if instead and not (value is None and plain in _REMOVABLE):
            raise ValueError(f"{name} is set by fireswarm: use {instead} instead")
        if name == "answer_limit" and value not in (None, *ANSWER_LIMITS):
            raise ValueError(f"answer_limit must be {' or '.join(ANSWER_LIMITS)}")
        if plain in _BODIES and isinstance(value, dict):
            _check_options(cast("dict[str, Any]", value))
    return options


ANSWER_LIMITS = ("max_tokens", "max_completion_tokens")


class ProviderSettings(SettingsSection):
    """Settings of one provider, and what the program knows of it.

    ``adapter`` is ``module:function`` below ``fireswarm.llm.providers``: the function takes the settings of the model,
    the key, the environment and ``sends``, and returns the model. ``access`` is such a function for a provider that is
    paid by the account of the machine or of the user, without a key: it takes the settings of the model and the
    environment, and describes the account. ``modules`` are those that only the ``extra`` installs. ``embedder`` is a
    function like ``adapter`` that returns an embedding model of a given name and size, "" if the API has none.
    """

    adapter: ClassVar[str] = ""
    access: ClassVar[str] = ""
    embedder: ClassVar[str] = ""
    default_model: ClassVar[str] = ""
    """Model if ``model.name`` is not set: current in the SDKs of this version (2026-11). It is empty if the names of
    models depend on the endpoint or on the region."""
    default_embedding: ClassVar[str] = ""
    usual_key: ClassVar[str] = ""
    """Variable of the API key if no other is named."""
    modules: ClassVar[tuple[str, ...]] = ()
    extra: ClassVar[str] = ""
    efforts: ClassVar[tuple[str, ...]] = ("none", "low", "medium", "high", "xhigh", "max")
    """Efforts that the API takes. ``none`` leaves the option out, unless it ``sends_none``."""
    sends_none: ClassVar[bool] = False

    base_url: str | None = Field(default=None, description="base URL of the API, such as a gateway's")
    requests_per_minute: int | None = Field(
        default=None, ge=1, description="maximum calls per minute, over all processes"
    )
    tokens_per_minute: int | None = Field(
        default=None, ge=1, description="maximum tokens per minute, over all processes"
    )
    options: Annotated[dict[str, Any], AfterValidator(_check_options)] = Field(
        default_factory=dict, description="passed through to the provider: thinking, effort, temperature, ..."
    )

    @property
    def key_variable(self) -> str | None:
        """Name of the variable with the key, or None if the provider needs no key. An empty name is a fault."""
        return getattr(self, "api_key_env", None)

    @property
    def usual_embedding(self) -> str:
        """Embedding model if none is named; "" if it must be named."""
        return self.default_embedding

    def with_effort(self, effort: str | None) -> ProviderSettings:
        """Return the settings with *effort* as an option; None leaves the options as they are."""
        if effort is None:
            return self
        options = {name: value for name, value in self.options.items() if name != "effort"}
        more = {} if effort == "none" and not self.sends_none else {"effort": effort}
        return self.model_copy(update={"options": options | more})


class AnthropicSettings(ProviderSettings):
    """Claude at Anthropic. The key is never in a file: ``api_key_env`` is the name of its variable."""

    adapter = "anthropic:open_model"
    default_model = "claude-sonnet-5-5"
    usual_key = "ANTHROPIC_API_KEY"

    api_key_env: str = Field(default=usual_key, description="environment variable that holds the API key")


class GeminiSettings(ProviderSettings):
    """Gemini at Google, by a key."""

    adapter = "gemini:open_model"
    embedder = "embeddings:open_by_key"
    default_embedding = "gemini-embedding-2"
    efforts = GEMINI_EFFORTS
    default_model = "gemini-3.8-flash"
    usual_key = "GEMINI_API_KEY"

    api_key_env: str = Field(default=usual_key, description="environment variable that holds the API key")


class VertexSettings(ProviderSettings):
    """A model on Vertex AI, by Application Default Credentials."""

    access = "google_access:describe_access"

    project: str | None = Field(
        default=None,
        pattern=PROJECT,
        description="Google Cloud project; default: GOOGLE_CLOUD_PROJECT, else the credentials' project",
    )
    location: str | None = Field(
        default=None, pattern=PLACE, description="location of Vertex AI; default: GOOGLE_CLOUD_LOCATION, else global"
    )


class ClaudeOnVertexSettings(VertexSettings):
    """Claude on Vertex AI."""

    adapter = "anthropic_platforms:open_on_vertex"
    default_model = AnthropicSettings.default_model


class GeminiOnVertexSettings(VertexSettings):
    """Gemini on Vertex AI."""

    adapter = "gemini:open_on_vertex"
    embedder = "embeddings:open_on_vertex"
    default_embedding = GeminiSettings.default_embedding
    efforts = GEMINI_EFFORTS
    default_model = GeminiSettings.default_model


class BedrockSettings(ProviderSettings):
    """Claude on Amazon Bedrock, by the credentials that AWS's own tools use."""

    adapter = "anthropic_platforms:open_on_bedrock"
    access = "aws_access:describe_access"
    modules = ("boto3", "botocore")
    extra = "bedrock"

    region: str | None = Field(
        default=None, pattern=PLACE, description="AWS region; default: AWS_REGION, else the profile's"
    )


class OpenAiSettings(ProviderSettings):
    """OpenAI, or any endpoint with its chat completions: Ollama, vLLM, OpenRouter, a gateway."""

    adapter = "openai:open_model"
    embedder = "openai:open_embedder"
    default_embedding = "text-embedding-3-small"
    efforts = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
    sends_none = True
    usual_key = "OPENAI_API_KEY"
    modules = ("openai",)
    extra = "openai"

    base_url: str | None = Field(
        default=None, description="base URL of the endpoint, such as http://127.0.0.1:11434/v1; default: OpenAI's"
    )
    api_key_env: str | None = Field(
        default=None,
        description="environment variable that holds the API key; default: OPENAI_API_KEY, and with base_url no key",
    )

    @property
    def usual_embedding(self) -> str:
        """OpenAI's; at another endpoint the model must be named."""
        return "" if self.base_url else self.default_embedding

    @property
    def key_variable(self) -> str | None:
        """Name of the key's variable, or None if no key is sent: by default, OpenAI's key goes only to OpenAI."""
        return self.api_key_env or (None if self.base_url else self.usual_key)


class Providers(SettingsSection):
    """Settings by provider, under the provider's name.

    A provider is an API that serves models: the same model at another provider has other credentials and limits.
    """

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"), populate_by_name=True)

    anthropic: AnthropicSettings = AnthropicSettings()
    anthropic_vertex: ClaudeOnVertexSettings = ClaudeOnVertexSettings()
    anthropic_bedrock: BedrockSettings = BedrockSettings()
    gemini: GeminiSettings = GeminiSettings()
    gemini_vertex: GeminiOnVertexSettings = GeminiOnVertexSettings()
    openai: OpenAiSettings = OpenAiSettings()

    def of(self, provider: str) -> ProviderSettings:
        """Return the settings of the provider with this name."""
        return SCRIPTED if provider == "scripted" else getattr(self, provider.replace("-", "_"))

    @property
    def key_variables(self) -> frozenset[str]:
        """Names of all variables that hold keys."""
        known: list[ProviderSettings] = [getattr(self, name) for name in Providers.model_fields]
        return frozenset(name for each in known for name in (each.key_variable, each.usual_key) if name)


class ScriptedSettings(ProviderSettings):
    """Answers from a file."""

    default_model = "scripted"
    efforts = OpenAiSettings.efforts


SCRIPTED = ScriptedSettings()
DEFAULTS = {name.replace("_", "-"): Providers().of(name) for name in Providers.model_fields}
"""The settings of each provider without configuration, by its name in files."""

if TYPE_CHECKING:
    ProviderName = str
else:
    ProviderName = Literal[(*DEFAULTS, "scripted")]

NAMES = (*DEFAULTS, "scripted")
"""The names of all providers."""

_COLONS = ("openai", "anthropic-bedrock", "scripted")
"""Providers whose names of models may contain a colon, such as ``qwen3:32b``."""

_MAKERS = {"claude-": "anthropic", "gemini-": "gemini", "gpt-": "openai"}
"""The provider that serves the models whose names begin so; gateways may serve any."""


def split_model(text: str, provider: str) -> tuple[str, str]:
    """Return the provider and the name of a model written as ``PROVIDER:NAME``, a provider, or a name of *provider*.

    The name is "" for the provider's default. Raises ValueError for an unknown provider.
    """
    if text in NAMES:
        return text, ""
    before, colon, after = text.partition(":")
    if not colon:
        return provider, text
    if before in NAMES:
        return before, after
    near = get_close_matches(before, NAMES, 1, 0.8)
    if near or provider not in _COLONS:
        hint = f"did you mean {near[0]}:{after}?" if near else f"write PROVIDER:NAME with one of {', '.join(NAMES)}"
        raise ValueError(f"{text} names the unknown provider {before}; {hint}")
    return provider, text


def split_provider(text: str) -> str:
    """Return the provider in ``PROVIDER:NAME``; another text stays as it is."""
    return text.partition(":")[0]


def maker_fault(provider: str, name: str, settings: ProviderSettings) -> str:
    """Return why *provider* cannot serve the model, and what to write, or "". A gateway may serve any model."""
    maker = next((maker for begin, maker in _MAKERS.items() if name.startswith(begin)), "")
    if not maker or settings.base_url is not None or provider == "scripted" or provider.split("-")[0] == maker:
        return ""
    return f"{provider} does not serve {name}: write {maker}:{name}, or the name of a model of {provider}"


def is_paid_by_account(model: str) -> bool:
    """Return True if *model* names a provider that is paid by the account of the machine, without a key."""
    provider = DEFAULTS.get(split_provider(model))
    return provider is not None and bool(provider.access)
