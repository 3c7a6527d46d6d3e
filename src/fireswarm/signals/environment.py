"""The standard environment variables of OpenTelemetry that decide whether anything is exported, and what.

All others, such as those of endpoints, headers, samplers and limits, are read by the SDK itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

SIGNALS = ("traces", "metrics", "logs")
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
OTLP = "otlp"
HTTP_EXPORTER = "otlp_proto_http"


def is_true(environment: Mapping[str, str], name: str) -> bool:
    """Return True if a variable is set to true, in any case of letters."""
    return environment.get(name, "").strip().lower() == "true"


def chosen_exporters(environment: Mapping[str, str]) -> dict[str, Sequence[str]]:
    """Return the names of the exporters of each signal that is exported; {} is the default.

    A signal is exported if its exporters are named, or an endpoint is set for it or for all. Without a named protocol,
    ``otlp`` is OTLP over HTTP, as the specification recommends.
    """
    if is_true(environment, "OTEL_SDK_DISABLED"):
        return {}
    exported = {signal: _exporters_of(signal, environment) for signal in SIGNALS}
    return {signal: names for signal, names in exported.items() if names}


def _exporters_of(signal: str, environment: Mapping[str, str]) -> Sequence[str]:
    upper = signal.upper()
    named = environment.get(f"OTEL_{upper}_EXPORTER", "").strip()
    has_endpoint = any(environment.get(name) for name in (ENDPOINT, f"OTEL_EXPORTER_OTLP_{upper}_ENDPOINT"))
    names = named.split(",") if named else [OTLP] if has_endpoint else []
    return [_entry_point(name.strip(), upper, environment) for name in names if name.strip() not in ("", "none")]


def _entry_point(name: str, signal: str, environment: Mapping[str, str]) -> str:
    """Return the name under which an installed exporter is found."""
    if name != OTLP:
        return name
    protocol = environment.get(f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL") or environment.get(
        "OTEL_EXPORTER_OTLP_PROTOCOL"
    )
    return "otlp_proto_grpc" if (protocol or "").strip() == "grpc" else HTTP_EXPORTER
