"""Export the signals of a block of code, if the environment says so."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from fireswarm.processes.startup import without_collector
from fireswarm.redaction import Redactor
from fireswarm.settings.extras import install_command
from fireswarm.signals.current import telemetry_in_use
from fireswarm.signals.environment import HTTP_EXPORTER, chosen_exporters

if TYPE_CHECKING:
    from fireswarm.signals.open_telemetry import OpenTelemetry

FLUSH_SECONDS = 1.0
"""Time limit for the last export: with the default drain, a process ends within the ten seconds of Cloud Run."""

RECEIVER = "fireswarm.signals.open_telemetry"
SDK, OTLP_EXPORTER = "opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http"

_log = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def exporting(redact: Redactor) -> AsyncGenerator[None]:
    """Export the signals of the block, and at its end what is left. By default, this imports and does nothing."""
    chosen = chosen_exporters(os.environ)
    if not chosen or telemetry_in_use.get() is not None:  # a block around this one exports already
        yield
        return
    exporter = _open(chosen, redact)
    telemetry_in_use.set(exporter)
    try:
        yield
    finally:
        telemetry_in_use.set(None)
        if exporter is not None:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(exporter.close, FLUSH_SECONDS)


def modules_to_import(environment: Mapping[str, str]) -> list[str]:
    """Return the modules that exporting imports, for a process that imports them for its copies; [] by default."""
    chosen = chosen_exporters(environment)
    if not chosen or not all(_is_installed(name) for name in _list_modules(chosen)):
        return []
    named = [(f"opentelemetry_{signal}_exporter", name) for signal, names in chosen.items() for name in names]
    found = [point.module for group, name in named for point in entry_points(group=group, name=name)]
    return [RECEIVER, *found]


def _open(chosen: dict[str, Sequence[str]], redact: Redactor) -> OpenTelemetry | None:
    """Return what exports; None with a warning if packages are missing or variables are wrong."""
    if missing := [name for name in _list_modules(chosen) if not _is_installed(name)]:
        _log.warning(
            "OpenTelemetry is asked for by environment variables, but %s is not installed: nothing is exported. "
            "Install it: %s",
            " and ".join(missing),
            install_command("otel"),
        )
        return None
    try:
        with without_collector():
            from fireswarm.signals.open_telemetry import OpenTelemetry, load_exporters
        return OpenTelemetry(load_exporters(chosen), redact)
    except Exception as error:  # the SDK raises for wrong limits in variables; the work goes on without it
        _log.warning("OpenTelemetry cannot start, so nothing is exported: %s: %s", type(error).__name__, error)
        return None


def _list_modules(chosen: dict[str, Sequence[str]]) -> list[str]:
    uses_http = any(HTTP_EXPORTER in names for names in chosen.values())
    return [SDK, OTLP_EXPORTER] if uses_http else [SDK]


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of a package above it
        return False
