"""Settings of receivers of notices: webhooks and commands that hear what the swarm needs or has done."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from fireswarm.contracts.base import SettingsSection
from fireswarm.errors import ConfigError


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
