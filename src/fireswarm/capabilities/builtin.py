"""The small built-in capabilities, without dependencies."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from fireswarm.capabilities.capability import Capability, CapabilityContext, tool
from fireswarm.capabilities.workspace.reading import reading_tools
from fireswarm.contracts.skills.tool import Tool
from fireswarm.errors import InvalidInput

MAX_FORECAST_DAYS = 14


# ── current_time ────────────────────────────────────────────────────────────────────────────────────────


def _time_tools(config: Any, context: CapabilityContext) -> Sequence[Tool]:
    """Return the tool of ``current_time``."""

    def get_current_time(timezone: str = "UTC", format: Literal["iso8601", "unix", "human"] = "iso8601") -> Any:
        """Returns the current time. timezone is a name such as UTC or America/New_York."""
        try:
            now = context.clock.now().astimezone(ZoneInfo(timezone))
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise InvalidInput(f"unknown time zone {timezone!r}: use a name such as UTC or Europe/Berlin") from error
        shown: str | int = now.isoformat(timespec="seconds")
        if format == "unix":
            shown = int(now.timestamp())
        elif format == "human":
            shown = f"{now:%A, %d %B %Y, %H:%M:%S %Z}"
        return {"time": shown, "timezone": timezone, "format": format}

    return [tool(idempotent=False)(get_current_time)]


# ── test_math, test_weather ─────────────────────────────────────────────────────────────────────────────


@tool
def add(a: float, b: float) -> float:
    """Adds two numbers."""
    return a + b


@tool
def subtract(a: float, b: float) -> float:
    """Subtracts the second number from the first."""
    return a - b


@tool
def multiply(a: float, b: float) -> float:
    """Multiplies two numbers."""
    return a * b


@tool
def divide(a: float, b: float) -> float:
    """Divides the first number by the second."""
    if b == 0:
        raise InvalidInput("division by zero: the second number must not be 0")
    return a / b


CONDITIONS = ("sunny", "cloudy", "rain", "windy", "snow", "fog")


def _weather(city: str, day: date) -> dict[str, Any]:
    """Return invented weather that depends only on the city and the day, so that tests can rely on it."""
    digest = hashlib.sha256(f"{city.strip().lower()} {day.isoformat()}".encode()).digest()
    low = digest[0] % 25 - 5
    return {
        "date": day.isoformat(),
        "condition": CONDITIONS[digest[1] % len(CONDITIONS)],
        "low_celsius": low,
        "high_celsius": low + 3 + digest[2] % 10,
        "humidity_percent": 30 + digest[3] % 60,
        "invented": True,
    }


def _weather_tools(config: Any, context: CapabilityContext) -> Sequence[Tool]:
    """Return the tools of ``test_weather``."""

    def get_weather(city: str) -> dict[str, Any]:
        """Gets the current (invented) weather of a city."""
        return {"city": city, **_weather(city, context.clock.now().date())}

    def get_forecast(city: str, days: int = 3) -> dict[str, Any]:
        """Gets an (invented) forecast for up to 14 days."""
        if not 1 <= days <= MAX_FORECAST_DAYS:
            raise InvalidInput(f"days must be from 1 to {MAX_FORECAST_DAYS}")
        today = context.clock.now().date()
        return {"city": city, "days": [_weather(city, today + timedelta(days=ahead)) for ahead in range(1, days + 1)]}

    return [tool(idempotent=False)(get_weather), tool(idempotent=False)(get_forecast)]


BUILTIN: tuple[Capability, ...] = (
    Capability(
        "workspace",
        "Workspace",
        "Lists, reads and searches files below the folder a task is about; changes nothing.",
        tools=lambda config, it: list(reading_tools(it.workdir, it.outputs, it.inputs, it.redact, it.hides).values()),
        icon="folder-search",
        category="File Operations",
    ),
    Capability("noop", "No-Op", "Provides no tools; for tests and demonstrations.", category="Testing"),
    Capability(
        "current_time",
        "Current Time",
        "The current date and time, in any time zone.",
        tools=_time_tools,
        icon="clock",
        category="Utilities",
    ),
    Capability(
        "test_math",
        "Test Math",
        "A calculator for trying out tools.",
        tools=lambda config, context: [add, subtract, multiply, divide],
        system_prompt="You have math tools. Use them for calculations: add, subtract, multiply, divide.",
        icon="calculator",
        category="Testing",
    ),
    Capability(
        "test_weather",
        "Test Weather",
        "Invented weather for trying out tools.",
        tools=_weather_tools,
        system_prompt="You have weather tools: get_weather for the current weather, get_forecast for later days. "
        "The data is invented.",
        icon="cloud-sun",
        category="Testing",
    ),
)
"""The larger built-in capabilities are in separate modules, listed in ``registry.LARGER``."""
