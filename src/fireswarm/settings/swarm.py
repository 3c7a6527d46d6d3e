"""Settings in ``swarm.yaml``, and the environment variables that override them."""

from __future__ import annotations

import hashlib
import os
import re
from enum import StrEnum
from pathlib import Path
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from fireswarm.contracts.base import SessionName, SettingsSection
from fireswarm.contracts.model_choice import NO_CHOICE, ModelChoice
from fireswarm.contracts.skills.limits import BackboneSettings
from fireswarm.errors import ConfigError
from fireswarm.settings.agent import AgentSettings, ModelSettings
from fireswarm.settings.trust import STORE_TOKEN as STORE_TOKEN

CONFIG_FILE = "swarm.yaml"


class StoreSettings(SettingsSection):
    """The Firestore to use. ``uri``: ``embedded``, ``memory``, ``firelite://host:port`` or ``firestore``."""

    uri: str = Field(default="embedded", description="embedded | memory | firelite://HOST:PORT | firestore")
    data: Path = Field(default=Path(".fireswarm/store.db"), description="data file of the embedded store")
    project: str | None = Field(default=None, description="Google Cloud project, for uri: firestore")
    database: str = Field(default="(default)", description="Firestore database id")
    blobs: str = Field(default=".fireswarm/blobs", description="folder or gs://bucket/prefix that stores large content")
    history_seconds: float = Field(
        default=3600.0, ge=0, description="age of old versions that the embedded store can read in a transaction"
    )
    history_disk_bytes: int = Field(
        default=1_073_741_824,
        ge=0,
        description="limit of old versions on the disk; the oldest are dropped first",
    )


class LeaseSettings(SettingsSection):
    """Leases and retries of tasks, in seconds."""

    lease_seconds: float = Field(default=60.0, gt=0.2, description="lease duration without renewal")
    backoff_base_seconds: float = Field(default=1.0, gt=0, description="pause before the first retry")
    backoff_max_seconds: float = Field(default=300.0, gt=0, description="maximum pause before a retry")


class QueueSettings(SettingsSection):
    """The queue of each role."""

    max_queued: int = Field(
        default=10_000, ge=0, description="queued tasks of a role at which a submit is refused; 0: no limit"
    )
    aging_seconds: float = Field(
        default=600.0, gt=0, description="time after which a queued task is also claimed by age, whatever its priority"
    )


class WorkerSettings(SettingsSection):
    """Settings of a role process."""

    concurrency: int = Field(
        default=4, ge=1, le=1_000, description="maximum number of concurrent tasks per role process"
    )
    plan_rounds: int = Field(
        default=8, ge=1, le=100, description="maximum number of times that a role may change the plan of one task"
    )
    drain_seconds: float = Field(
        default=7.0, gt=0, description="time limit for draining after SIGTERM (Cloud Run kills after 10 s)"
    )
    sessions: tuple[str, ...] = Field(
        default=(), max_length=10, description="work only on tasks of these sessions; empty: all sessions"
    )
    think: Literal["auto", "never"] = Field(
        default="auto", description="auto: roles use the model if its API key is set; never: no model"
    )
    heartbeat_working_seconds: float = Field(default=10.0, gt=0, description="interval of heartbeats while working")
    heartbeat_idle_seconds: float = Field(default=60.0, gt=0, description="interval of heartbeats while idle")


class StateSettings(SettingsSection):
    """Storage of the skills' conversations. ``database_url`` is read only from ``DATABASE_URL`` or from here."""

    backend: str = Field(
        default="firestore",
        pattern=r"^[a-z][a-z0-9_-]{0,63}$",
        description="firestore: the swarm's store, whichever it is; or an installed store, such as postgres",
    )
    database_url: str | None = Field(
        default=None, description="for an installed store such as postgres; prefer the variable DATABASE_URL"
    )
    retention_days: float = Field(default=30.0, gt=0, description="retention time of an ended conversation")


class MemorySettings(SettingsSection):
    """Facts that outlive their task. Sessions share none, unless the operator says so."""

    share: tuple[Literal["project"], ...] = Field(
        default=(), description="[project]: share facts with the other sessions of this project that share theirs"
    )
    project: str = Field(
        default="",
        max_length=128,
        description="name of the project; empty: the folder of swarm.yaml. Set it if the processes have other paths",
    )
    embeddings: Literal["auto", "none", "gemini", "gemini-vertex", "openai"] = Field(
        default="auto",
        description="provider whose embeddings find facts by meaning, beside words; auto: the model's provider, if it "
        "has embeddings and its key is set",
    )
    embedding_model: str = Field(
        default="", max_length=200, description="name of the embedding model; empty: the provider's usual one"
    )
    prompt_tokens: int = Field(
        default=1_500, ge=0, le=50_000, description="maximum tokens of facts in the first prompt of a role; 0: none"
    )


class NoticeKind(StrEnum):
    """What a notice is about."""

    NEEDS_PERSON = "needs_person"
    DEAD_LETTER = "dead_letter"
    OBJECTIVE_ENDED = "objective_ended"
    BUDGET_80 = "budget_80"
    BUDGET_100 = "budget_100"


class ReceiverSettings(SettingsSection):
    """One receiver of notices: a webhook or a command."""

    url: str = Field(default="", description="address of the webhook")
    url_env: str = Field(
        default="", description="environment variable with the address, for one that is a secret, such as Slack's"
    )
    secret_env: str = Field(
        default="FIRESWARM_NOTIFY_SECRET",
        description="environment variable with the secret that signs requests to the webhook; not set: no signature",
    )
    command: tuple[str, ...] = Field(
        default=(), description="program and arguments that get the notice as JSON on standard input, in place of url"
    )
    on: tuple[NoticeKind, ...] = Field(default=tuple(NoticeKind), description="kinds of notices to send")
    format: Literal["standard", "slack"] = Field(
        default="standard", description="standard: as Standard Webhooks describe it; slack: a text for a Slack webhook"
    )
    console: str = Field(default="", description="address of the console, for a link to the task, such as https://HOST")
    timeout_seconds: float = Field(default=10.0, gt=0, le=300, description="time limit of one delivery")

    @model_validator(mode="after")
    def _check_way(self) -> Self:
        ways = [name for name in ("url", "url_env", "command") if getattr(self, name)]
        if len(ways) != 1:
            given = " and ".join(ways) or "none"
            raise ValueError(f"give one of url, url_env and command; given: {given}")
        return self

    def find_address(self) -> str:
        """Return the address of the webhook. Raises ConfigError for one that cannot be used."""
        address = self.url or os.environ.get(self.url_env, "")
        if not address:
            raise ConfigError(f"the environment variable {self.url_env} is not set: it holds the webhook's address")
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError("the webhook's address does not begin with http:// or https:// and a host")
        return address


_PEOPLE = re.compile(r"\*|(\*|[a-z0-9.!#$%&'+/=?^_`{|}~-]+)@[a-z0-9]([a-z0-9.-]*[a-z0-9])?", re.ASCII)
"""``*``, ``*@domain``, or an e-mail address without quotes, in lower case."""


class ConsoleSettings(SettingsSection):
    """People who use the console of ``swarm api`` without a link: whom Google's proxy or a token of Google names."""

    operators: tuple[str, ...] = Field(
        default=(),
        max_length=1_000,
        description="e-mail addresses that may look and act; *@DOMAIN: all of a domain; *: all whom the proxy lets in",
    )
    viewers: tuple[str, ...] = Field(
        default=(), max_length=1_000, description="the same, for people who may only look; an operator is none of them"
    )
    iap_audience: str = Field(
        default="",
        max_length=500,
        description="audience of the Identity-Aware Proxy in front of `swarm api`, which begins with /projects/; "
        "empty: its headers count for nothing",
    )

    @field_validator("operators", "viewers")
    @classmethod
    def _check_people(cls, people: tuple[str, ...]) -> tuple[str, ...]:
        lowered = tuple(each.lower() if each.isascii() else each for each in people)
        wrong = next((each for each in lowered if not _PEOPLE.fullmatch(each)), None)
        if wrong is not None:
            raise ValueError(f"{wrong!r} is no e-mail address, no *@domain and not *")
        return lowered


class Settings(AgentSettings):
    """All settings of the swarm. Relative paths are resolved against ``root``."""

    root: Path = Field(default=Path(), description="folder that holds roles/, mailbox/ and skills/")
    session: SessionName = Field(default="default", description="name of the session")
    roles: dict[str, ModelChoice] = Field(
        default_factory=dict,
        description="model, effort and fallback by role, in place of those of its ROLE.md and of model",
    )
    store: StoreSettings = StoreSettings()
    leases: LeaseSettings = LeaseSettings()
    queue: QueueSettings = QueueSettings()
    worker: WorkerSettings = WorkerSettings()
    state: StateSettings = StateSettings()
    memory: MemorySettings = MemorySettings()
    backbone: BackboneSettings = BackboneSettings()
    console: ConsoleSettings = ConsoleSettings()
    notify: dict[str, ReceiverSettings] = Field(
        default_factory=dict, max_length=30, description="receivers of notices by name: webhooks and commands"
    )

    def path(self, relative: Path | str) -> Path:
        """Resolve a path against the root folder."""
        return (self.root / relative).resolve()

    def model_of(self, role: str, card: ModelChoice, task: ModelChoice = NO_CHOICE) -> ModelSettings:
        """Return the model of a role, or of one of its tasks. Raises ConfigError for a choice that cannot be used.

        The task's choice is used first, then that of ``roles``, then that of the role's *card*, then ``model``.
        """
        return self.model.choose(card).choose(self.roles.get(role, NO_CHOICE)).choose(task)

    def chosen_for(self, role: str, card: ModelChoice) -> ModelChoice:
        """Return what the settings and the card choose for a role."""
        return self.roles.get(role, NO_CHOICE).or_else(card)

    @property
    def shared_project(self) -> str:
        """Name of the project whose sessions share facts, or "" if this session shares none."""
        if "project" not in self.memory.share:
            return ""
        root = self.root.resolve()
        return self.memory.project or f"{root.name}-{hashlib.sha256(str(root).encode()).hexdigest()[:12]}"


ENVIRONMENT: dict[str, tuple[str, ...]] = {
    "FIRESWARM_STORE": ("store", "uri"),
    "FIRESWARM_DATA": ("store", "data"),
    "FIRESWARM_BLOBS": ("store", "blobs"),
    "FIRESWARM_DATABASE": ("store", "database"),
    "GOOGLE_CLOUD_PROJECT": ("store", "project"),
    "FIRESWARM_SESSION": ("session",),
    "STATE_STORE_BACKEND": ("state", "backend"),
    "DATABASE_URL": ("state", "database_url"),
    "FIRESWARM_LEASE_SECONDS": ("leases", "lease_seconds"),
    "FIRESWARM_BACKOFF_BASE_SECONDS": ("leases", "backoff_base_seconds"),
    "FIRESWARM_MAX_QUEUED": ("queue", "max_queued"),
    "FIRESWARM_AGING_SECONDS": ("queue", "aging_seconds"),
    "FIRESWARM_THINK": ("worker", "think"),
    "FIRESWARM_PROVIDER": ("model", "provider"),
    "FIRESWARM_MODEL": ("model", "name"),
    "FIRESWARM_SCRIPT": ("model", "script"),
    "FIRESWARM_CONCURRENCY": ("worker", "concurrency"),
}
"""Environment variables and the keys they set; they override the file."""
