"""Settings in ``agent.yaml``, also allowed in ``swarm.yaml``: model, runtime, skills, budget, logging."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from fireswarm.contracts.base import SettingsSection, describe_fault
from fireswarm.contracts.limits import Confinement
from fireswarm.contracts.model_choice import Effort, Fallback, ModelChoice
from fireswarm.contracts.skills.permissions import Rules
from fireswarm.errors import ConfigError
from fireswarm.settings.model_limits import UNKNOWN, Price, limits_of
from fireswarm.settings.providers import ProviderName, Providers, ProviderSettings, maker_fault, split_model


class ModelSettings(SettingsSection):
    """The model, and the format of requests."""

    provider: ProviderName = Field(
        default="anthropic", description="API that serves the model, see models.md; scripted needs no network"
    )
    name: str | None = Field(default=None, description="model name; default: the provider's, see models.md")
    effort: Effort | None = Field(
        default=None, description="how much the model thinks, in place of the provider's option effort"
    )
    fallback: Fallback = Field(
        default=(), description="models to ask, in this order, while the model cannot be reached: NAME, PROVIDER:NAME"
    )
    script: str | None = Field(
        default=None, description="for provider scripted: a fixtures file (.json), or FILE.py:FUNCTION"
    )
    max_tokens: int | None = Field(
        default=None, ge=16, description="maximum tokens of one answer; default: by model, see models.md"
    )
    max_context_tokens: int | None = Field(
        default=None, ge=1_000, description="maximum tokens of prompt and answer together; default: the model's"
    )
    response_headroom_tokens: int = Field(
        default=2_000,
        ge=0,
        description="minimum number of tokens of the context reserved for the answer",
    )
    decision_mode: Literal["tools", "json"] = Field(
        default="tools",
        description="tools: the model calls tools; json: each answer is a JSON object, for models without tools too",
    )
    structured_output_mode: Literal["native_with_json_fallback", "native_only", "json_only"] = Field(
        default="native_with_json_fallback",
        description="format in which JSON is requested, for decision_mode json and for advice",
    )
    stream: bool = Field(default=True, description="stream the model's text")
    request_timeout_seconds: float = Field(
        default=120.0, gt=0, description="maximum wait for the next chunk of an answer"
    )
    providers: Providers = Providers()

    @property
    def model_name(self) -> str:
        """Name of the model."""
        return self.name or self.chosen.default_model

    @property
    def chosen(self) -> ProviderSettings:
        """Settings of the chosen provider, with the effort."""
        return self.providers.of(self.provider).with_effort(self.effort)

    @property
    def full_name(self) -> str:
        """The model as ``PROVIDER:NAME``."""
        return f"{self.provider}:{self.model_name}"

    @property
    def choice(self) -> ModelChoice:
        """The model, its effort and its fallbacks, in a form that can be stored."""
        return ModelChoice(model=self.full_name, effort=self.effort, fallback=self.fallback)

    @property
    def context_tokens(self) -> int:
        """Maximum tokens of prompt and answer together."""
        return self.max_context_tokens or limits_of(self.model_name).window

    @property
    def answer_tokens(self) -> int:
        """Maximum tokens of one answer."""
        return self.max_tokens or limits_of(self.model_name).answer

    @model_validator(mode="after")
    def _check_name(self) -> ModelSettings:
        if not self.model_name:
            raise ValueError(f"provider {self.provider} has no default model: set model.name, or --model")
        chosen = self.providers.of(self.provider)
        if self.effort is not None and self.effort not in chosen.efforts:
            known = ", ".join(chosen.efforts)
            raise ValueError(f"provider {self.provider} has no effort {self.effort}: choose one of {known}")
        for number in range(len(self.fallback)):
            self.behind(number)
        return self

    def choose(self, choice: ModelChoice) -> ModelSettings:
        """Return the settings of the chosen model; what the choice leaves open stays as it is.

        Limits of another model are those of the table; a model that the table does not have keeps the configured ones.
        Raises ConfigError.
        """
        if choice.model is None and choice.effort is None and choice.fallback is None:
            return self
        update: dict[str, Any] = {}
        try:
            if choice.model is not None:
                update = self._settings_for(choice.model)
                if update and self.fallback:  # the names are those of the former provider
                    update["fallback"] = tuple(self.behind(number).full_name for number in range(len(self.fallback)))
            if choice.effort is not None:
                update["effort"] = choice.effort
            if choice.fallback is not None:
                update["fallback"] = choice.fallback
            return ModelSettings(**(dict(self) | update))
        except ValidationError as error:
            faults = [describe_fault(item).removeprefix("Value error, ") for item in error.errors()]
            raise ConfigError("; ".join(faults)) from error
        except ValueError as error:
            raise ConfigError(str(error)) from error

    def behind(self, number: int) -> ModelSettings:
        """Return the settings of a fallback, and of those after it. The effort is the model's alone.

        Raises ValueError for a name that cannot be used.
        """
        update = self._settings_for(self.fallback[number]) | {"effort": None, "fallback": self.fallback[number + 1 :]}
        return self.model_copy(update=update)

    def _settings_for(self, text: str) -> dict[str, Any]:
        """Return the settings that differ for the model *text*. Raises ValueError."""
        provider, name = split_model(text, self.provider)
        chosen = self.providers.of(provider)
        name = name or (self.name if provider == self.provider else None) or chosen.default_model
        if not name:
            raise ValueError(f"provider {provider} has no default model: write {provider}:NAME")
        if fault := maker_fault(provider, name, chosen):
            raise ValueError(fault)
        if (provider, name) == (self.provider, self.model_name):
            return {}
        known = limits_of(name) is not UNKNOWN
        return {"provider": provider, "name": name} | (
            {"max_tokens": None, "max_context_tokens": None} if known else {}
        )

    @model_validator(mode="after")
    def _room_for_a_prompt(self) -> ModelSettings:
        if self.response_headroom_tokens >= self.context_tokens:
            raise ValueError("response_headroom_tokens must be smaller than max_context_tokens")
        return self


class RuntimeSettings(SettingsSection):
    """Execution of a run: permissions, limits, failures, shutdown."""

    profile: Literal["permissive", "read_only", "demo_safe"] = Field(
        default="permissive",
        description="permissions of commands: unrestricted, read-only, or read-only plus the skill's own scripts",
    )
    confinement: Confinement = Field(
        default="auto",
        description="auto: bubblewrap if it works, otherwise Landlock (either can be named); with these, commands see "
        "only the workspace and programs; container: a container is the boundary; none: they see the whole machine",
    )
    network: bool = Field(default=False, description="allow network access to confined commands that may write")
    readable: tuple[Path, ...] = Field(
        default=(), description="more folders that confined commands may read, such as a language's packages"
    )
    pass_environment: tuple[str, ...] = Field(
        default=(),
        description="more environment variables for commands and code of skills; without it they get those of programs "
        "and languages only, such as PATH, LANG and VIRTUAL_ENV",
    )
    shell_linux: str = Field(default="/bin/bash", description="shell for commands on Linux and macOS, called with -lc")
    shell_windows: str = Field(default="pwsh", description="shell for commands on Windows")
    timeout_seconds: float = Field(default=120.0, gt=0, description="time limit of one command or skill")
    max_turns: int = Field(default=40, ge=1, le=1_000, description="maximum number of model decisions in a run")
    max_llm_retries: int = Field(
        default=20, ge=0, le=50, description="retries of a model call after a transient error; 20 last some minutes"
    )
    retry_base_delay_seconds: float = Field(default=1.0, ge=0, description="upper bound of the first pause")
    retry_max_delay_seconds: float = Field(
        default=60.0,
        ge=0,
        description="upper bound of every pause; if a provider requests a longer one, the run ends as blocked and "
        "can be resumed later",
    )
    on_step_failure: Literal[
        "retry_once_then_fallback_then_abort", "fallback_then_abort", "retry_once_then_report", "report", "abort"
    ] = Field(
        default="report",
        description="action after a failed command or skill; report: the model sees the error and continues",
    )
    max_output_bytes: int = Field(
        default=16_000,
        ge=256,
        description="characters of a page of output; without tools, bytes kept of each output stream of a command",
    )
    max_memory_mb: int = Field(
        default=4_000,
        ge=64,
        description="memory of a command and its child processes, in megabytes; above it, the command is killed",
    )
    max_processes: int = Field(
        default=500, ge=2, description="number of processes of a command; above it, the command is killed"
    )
    max_disk_mb: int = Field(
        default=10_000,
        ge=1,
        description="disk space that may be used while a command runs, in megabytes; above it, the command is killed",
    )
    signal_grace_seconds: float = Field(
        default=10.0, ge=0, description="time limit for stopping after SIGINT or SIGTERM"
    )


class PermissionSettings(SettingsSection):
    """Rules for commands, tools and skills.

    ``deny`` rules are checked before ``ask`` rules, and ``ask`` before ``allow``.
    """

    default: Literal["auto", "allow", "ask", "deny"] = Field(
        default="auto",
        description="decision on changes that match no rule; auto: ask for `agent`, allow for `swarm`",
    )
    allow: Rules = Field(default=(), description="allowed without asking: Bash(git status), Bash(ls:*)")
    ask: Rules = Field(
        default=(), description="needs a person's approval: Bash(git push:*), mcp__github, Skill(deploy)"
    )
    deny: Rules = Field(default=(), description="denied, whatever else is allowed: Bash(rm:*), WebFetch")


class SkillSettings(SettingsSection):
    """Location of skills, and limits of their disclosure."""

    dir: Path | tuple[Path, ...] = Field(default=Path("./skills"), description="folder of skills, or a list of folders")
    builtin: bool = Field(default=True, description="also use the packaged skills of fireswarm")
    prefilter_top_k: int = Field(default=8, ge=1, le=100, description="maximum number of candidates shown to the model")
    prefilter_min_score: float = Field(default=55, ge=0, le=100, description="minimum score of a candidate, 0 to 100")
    prefilter_zero_candidate_strategy: Literal["fallback_all_skills", "fail_fast"] = Field(
        default="fallback_all_skills", description="behavior when no skill reaches the minimum score"
    )
    reranker: Literal["none", "gemini"] = Field(
        default="none", description="re-rank candidates by embeddings of their descriptions"
    )
    reranker_model: str = Field(default="gemini-embedding-2", description="embedding model of the re-ranker")
    disclosure_max_reference_bytes: int = Field(
        default=120_000, ge=0, description="maximum bytes of one page of a skill's file"
    )
    disclosure_max_reference_tokens: int = Field(
        default=4_000, ge=0, description="maximum tokens of one page of a skill's file, about four characters each"
    )
    outside_scripts: Literal["block", "warn"] = Field(
        default="block", description="handling of a skill that references scripts outside its folder"
    )
    max_depth: int = Field(default=6, ge=1, description="maximum depth of folders searched for skills")
    max_folders: int = Field(default=25_000, ge=1, description="maximum number of folders searched for skills")

    @property
    def dirs(self) -> tuple[Path, ...]:
        """The folders, as a tuple."""
        return self.dir if isinstance(self.dir, tuple) else (self.dir,)


class BudgetSettings(SettingsSection):
    """Limits in tokens and USD; null means no limit. Checked before each call."""

    task_tokens: int | None = Field(default=None, ge=1, description="token budget per task or run")
    task_usd: float | None = Field(default=None, gt=0, description="budget in USD per task or run")
    session_tokens: int | None = Field(default=None, ge=1, description="token budget per session")
    session_usd: float | None = Field(default=None, gt=0, description="budget in USD per session")
    day_tokens: int | None = Field(default=None, ge=1, description="token budget per day (UTC)")
    day_usd: float | None = Field(default=None, gt=0, description="budget in USD per day (UTC)")
    prices: dict[str, Price] = Field(
        default_factory=dict,
        description="USD per million tokens by model: input, output, cached, cache_write; overrides the built-in table",
    )

    @model_validator(mode="after")
    def _known_prices(self) -> BudgetSettings:
        for model, price in self.prices.items():
            if unknown := set(price) - {"input", "output", "cached", "cache_write"}:
                raise ValueError(f"prices of {model}: unknown {', '.join(sorted(unknown))}")
        return self


class LoggingSettings(SettingsSection):
    """Display and storage of a run's events."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="lowest severity of events shown"
    )
    jsonl_dir: Path = Field(default=Path("./runs"), description="folder for event logs of runs")
    run_id_pattern: Literal["YYYYMMDD-HHMMSS-<short-uuid>"] = Field(
        default="YYYYMMDD-HHMMSS-<short-uuid>", description="format of run ids"
    )
    debug_llm_bodies: bool = Field(
        default=False, description="keep requests and answers next to the log, with secrets redacted"
    )
    sanitize_control_chars: Literal[True] = Field(default=True, description="cannot be turned off")
    redact_secrets: Literal[True] = Field(default=True, description="cannot be turned off")


class AgentSettings(SettingsSection):
    """All settings of the agent; the whole ``agent.yaml``."""

    capabilities: tuple[str | dict[str, Any], ...] = Field(
        default=("workspace",),
        description="capabilities of the agent command, in order: ids, or maps of id, config and prefix",
    )
    model: ModelSettings = ModelSettings()
    runtime: RuntimeSettings = RuntimeSettings()
    permissions: PermissionSettings = PermissionSettings()
    skills: SkillSettings = SkillSettings()
    budget: BudgetSettings = BudgetSettings()
    logging: LoggingSettings = LoggingSettings()
