"""The settings of the agent for a run: recorded answers, or a model with its provider, its key and a limit of money."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from benchmarks.agent_tasks.task import BenchTask
from fireswarm.errors import InvalidInput
from fireswarm.processes.confinement.view import View
from fireswarm.runs.model_adapters import make_model
from fireswarm.settings import AgentSettings, load_agent_settings
from fireswarm.settings.model_limits import plain_name, price_of

RECORDED = "answers recorded by hand: this says nothing about a model"
TASK_USD = 0.50
TASK_TOKENS = 300_000
"""Limit for a model without a known price, which no limit in USD can be held for."""

ALWAYS = {"capabilities": ["workspace"], "logging.jsonl_dir": "runs"}
"""Settings that no file changes: only the tools for files and commands, and the log where the runner reads it."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The chosen model's settings, None for recorded answers; ``notes`` are for the person who reads the table.

    ``environment`` are further variables for the processes of the runs.
    """

    settings: AgentSettings | None
    notes: tuple[str, ...]
    model: str = "recorded"
    provider: str = "scripted"
    environment: Mapping[str, str] = field(default_factory=dict[str, str])

    def settings_for(self, task: BenchTask) -> AgentSettings:
        """Return the settings of one run."""
        runtime = {"max_turns": task.file.limits.turns}
        if self.settings is not None:
            return self.settings.model_copy(update={"runtime": self.settings.runtime.model_copy(update=runtime)})
        model = {"provider": "scripted", "script": str(task.recording)}
        return AgentSettings.model_validate({"model": model, "runtime": runtime})


def provider_of(model: str) -> str | None:
    """Return the provider that a model's name belongs to, or None if several could serve it."""
    if re.match(r"(?:[a-z-]+\.)?anthropic\.claude-|arn:aws", model):
        return "anthropic-bedrock"
    if model.startswith("publishers/"):
        return "gemini-vertex" if "/google/" in model else "anthropic-vertex"
    if "/" in model.removeprefix("models/"):
        return None
    if re.match(r"claude-.*@", model):
        return "anthropic-vertex"
    makers = (("claude-", "anthropic"), ("gemini-", "gemini"), ("gpt-", "openai"), ("chatgpt-", "openai"))
    found = next((provider for start, provider in makers if plain_name(model).startswith(start)), None)
    return found or ("openai" if re.match(r"o[1-9](?:-|$)", model) else None)


def choose(
    model: str | None, provider: str | None, config: Path | None, usd: float, environment: Mapping[str, str]
) -> Chosen:
    """Return the settings for a model, or for the recorded answers if neither it nor its provider is named.

    Raises MissingApiKey, ConfigError, SandboxRefused and InvalidInput before anything is run.
    """
    if model is None and provider is None:
        if config is not None:
            raise InvalidInput("--config needs --model or --provider: recorded answers use the default settings")
        _check_commands(AgentSettings())
        return Chosen(None, (RECORDED,))
    settings = _agent_settings(model, provider, config)
    name = settings.model.model_name
    if settings.model.provider == "scripted":
        raise InvalidInput("provider scripted is what runs without --model and --provider")
    _close(make_model(settings, Path.cwd(), environment))  # here a key that is missing is told once
    notes: list[str] = []
    limits: dict[str, Any] = {"task_usd": usd, "task_tokens": settings.budget.task_tokens}
    if price_of(name, settings.budget.prices) is None:
        limits = {"task_usd": None, "task_tokens": settings.budget.task_tokens or TASK_TOKENS}
        notes.append(
            f"no price is known for {name}: a task may use {limits['task_tokens']:,} tokens, whatever they cost"
        )
    settings = settings.model_copy(update={"budget": settings.budget.model_copy(update=limits)})
    _check_commands(settings)
    if settings.runtime.confinement == "none":
        notes.append("runtime.confinement is none: the commands of the model are not confined")
    return Chosen(settings, tuple(notes), name, settings.model.provider)


def _agent_settings(model: str | None, provider: str | None, config: Path | None) -> AgentSettings:
    """Return the defaults, or the settings in *config*, with the model and what always holds."""
    overrides: dict[str, Any] = {"model.name": model, "model.provider": provider, **ALWAYS}
    if provider is None and model is not None and not _names_provider(config):
        overrides["model.provider"] = provider_of(model)
        if overrides["model.provider"] is None:
            raise InvalidInput(f"{model} may be at several providers: name one with --provider (PROVIDER=... for make)")
    return load_agent_settings(config, overrides)


def _names_provider(config: Path | None) -> bool:
    return config is not None and "provider" in load_agent_settings(config).model.model_fields_set


def _check_commands(settings: AgentSettings) -> None:
    """Raise SandboxRefused if commands cannot be confined on this machine."""
    if settings.runtime.confinement != "none":
        with tempfile.TemporaryDirectory() as folder:
            View(Path(folder), confinement=settings.runtime.confinement).check()


def _close(model: Any) -> None:
    if (close := getattr(model, "aclose", None)) is not None:
        anyio.run(close)
