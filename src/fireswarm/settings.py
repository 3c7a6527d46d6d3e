"""Settings: ``swarm.yaml`` and the environment, read once, frozen, unknown keys refused."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fireswarm.errors import ConfigError

CONFIG_FILE = "swarm.yaml"


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class StoreSettings(_Section):
    """Which Firestore. ``uri``: ``embedded``, ``memory``, ``firelite://host:port`` or ``firestore``."""

    uri: str = Field(default="embedded", description="embedded | memory | firelite://HOST:PORT | firestore")
    data: Path = Field(default=Path(".fireswarm/store.db"), description="data file of the embedded store")
    project: str | None = Field(default=None, description="Google Cloud project, for uri: firestore")
    database: str = Field(default="(default)", description="Firestore database id")
    blobs: str = Field(default=".fireswarm/blobs", description="folder or gs://bucket/prefix for large content")


class LeaseSettings(_Section):
    """How tasks are held and retried; all in seconds."""

    lease_seconds: float = Field(default=60.0, gt=0.2, description="life of a claim without renewal")
    backoff_base_seconds: float = Field(default=1.0, gt=0, description="pause before the first retry")
    backoff_max_seconds: float = Field(default=300.0, gt=0, description="longest pause before a retry")


class WorkerSettings(_Section):
    """One role process."""

    concurrency: int = Field(default=4, ge=1, le=1_000, description="tasks a role process works on at once")
    drain_seconds: float = Field(default=7.0, gt=0, description="time to finish after SIGTERM (Cloud Run kills at 10)")
    heartbeat_working_seconds: float = Field(default=10.0, gt=0, description="pause between heartbeats while working")
    heartbeat_idle_seconds: float = Field(default=30.0, gt=0, description="pause between heartbeats while idle")


class Settings(_Section):
    """Everything an operator can set. Relative paths are taken from ``root``."""

    root: Path = Field(default=Path(), description="folder that holds roles/, mailbox/ and skills/")
    session: str = Field(default="default", min_length=1, max_length=128, description="name of the session")
    store: StoreSettings = StoreSettings()
    leases: LeaseSettings = LeaseSettings()
    worker: WorkerSettings = WorkerSettings()

    def path(self, relative: Path | str) -> Path:
        """Resolve a path against the root folder."""
        return (self.root / relative).resolve()


ENVIRONMENT: dict[str, tuple[str, ...]] = {
    "FIRESWARM_STORE": ("store", "uri"),
    "FIRESWARM_DATA": ("store", "data"),
    "FIRESWARM_BLOBS": ("store", "blobs"),
    "FIRESWARM_DATABASE": ("store", "database"),
    "GOOGLE_CLOUD_PROJECT": ("store", "project"),
    "FIRESWARM_SESSION": ("session",),
    "FIRESWARM_LEASE_SECONDS": ("leases", "lease_seconds"),
    "FIRESWARM_BACKOFF_BASE_SECONDS": ("leases", "backoff_base_seconds"),
    "FIRESWARM_CONCURRENCY": ("worker", "concurrency"),
}
"""Environment variables and the keys they set; they win over the file."""


def load_settings(
    root: Path, environment: Mapping[str, str] | None = None, overrides: Mapping[str, Any] | None = None
) -> Settings:
    """Read ``<root>/swarm.yaml`` where there is one, then the environment, then *overrides* (dotted keys)."""
    env = os.environ if environment is None else environment
    path = root / CONFIG_FILE
    values = _read(path)
    for name, keys in ENVIRONMENT.items():
        if env.get(name):
            _put(values, keys, env[name])
    if env.get("FIRESTORE_EMULATOR_HOST") and "FIRESWARM_STORE" not in env:
        _put(values, ("store", "uri"), f"firelite://{env['FIRESTORE_EMULATOR_HOST']}")
    for key, value in (overrides or {}).items():
        if value is not None:
            _put(values, tuple(key.split(".")), value)
    try:
        return Settings.model_validate(values | {"root": root})
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()]
        raise ConfigError(f"{path if path.exists() else 'settings'}: {'; '.join(faults)}") from error


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        loaded = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not YAML: {error}") from error
    if not isinstance(loaded, dict):
        raise ConfigError(f"{path} must be a map of settings")
    values: dict[str, Any] = loaded
    return values


def _put(values: dict[str, Any], keys: tuple[str, ...], value: Any) -> None:
    for key in keys[:-1]:
        section = values.setdefault(key, {})
        if not isinstance(section, dict):
            raise ConfigError(f"{CONFIG_FILE}: {key} must be a map")
        values = section
    values[keys[-1]] = value
