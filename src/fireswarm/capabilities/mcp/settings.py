"""Settings of MCP servers, including the environment variables passed to them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from fireswarm.errors import ConfigError

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

ServerName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9](_?[a-z0-9-]){0,29}$")]


class McpServer(BaseModel):
    """One server: ``command`` with ``args``, or ``url``.

    ``${NAME}`` in ``env`` and ``headers`` is replaced by a variable of the agent's environment. No other variable that
    could be a secret is passed to a server.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    cwd: str | None = None
    url: str = ""
    headers: dict[str, str] = Field(default_factory=dict)
    allow_hosts: tuple[str, ...] = ()
    trust_annotations: bool = Field(default=True, description="trust the server's read-only hints")
    optional: bool = Field(default=False, description="if it fails to start, continue without its tools")

    @model_validator(mode="after")
    def _one_way(self) -> McpServer:
        if bool(self.command) == bool(self.url):
            raise ValueError("give either command (with args, env, cwd) or url (with headers, allow_hosts)")
        if self.url and not self.url.startswith(("http://", "https://")):
            raise ValueError("url must start with http:// or https://")
        return self


class McpConfig(BaseModel):
    """Servers by name, and time limits."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    servers: dict[ServerName, McpServer] = Field(min_length=1)
    start_seconds: float = Field(
        default=30.0, gt=0, le=600, description="seconds to wait for a server's first response"
    )
    list_seconds: float = Field(default=30.0, gt=0, le=600, description="seconds to wait for the list of tools")
    call_seconds: float = Field(default=120.0, gt=0, le=3_600, description="seconds to wait for one call")
    keep_list_seconds: float = Field(default=600.0, ge=0, description="seconds to cache the list of tools")


def expand_variables(values: Mapping[str, str], environment: Mapping[str, str], where: str) -> dict[str, str]:
    """Return *values* with variables replaced. Raises ConfigError for a variable that is not set."""

    def value_of(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in environment:
            raise ConfigError(f"{where} names the variable {name}, which is not set")
        return environment[name]

    return {name: _VARIABLE.sub(value_of, value) for name, value in values.items()}


def identity(server: McpServer) -> str:
    """Return the cache key of a list of tools: servers with the same settings have the same tools."""
    return hashlib.sha256(server.model_dump_json().encode()).hexdigest()
