"""The environment decides whether and what is exported; by default, the SDK is not even imported."""

from __future__ import annotations

import importlib.util
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fireswarm.redaction import Redactor
from fireswarm.signals.current import telemetry_in_use
from fireswarm.signals.environment import chosen_exporters
from fireswarm.signals.exporting import exporting, modules_to_import

ADDRESS = "http://127.0.0.1:9"
ALL = {signal: ["otlp_proto_http"] for signal in ("traces", "metrics", "logs")}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, {}),
        ({"OTEL_SERVICE_NAME": "x", "OTEL_TRACES_EXPORTER": "none"}, {}),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ADDRESS}, ALL),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ADDRESS, "OTEL_SDK_DISABLED": "TRUE"}, {}),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": ADDRESS}, {"traces": ["otlp_proto_http"]}),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": ADDRESS, "OTEL_LOGS_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"},
            {"traces": ["otlp_proto_http"]},
        ),
        ({"OTEL_TRACES_EXPORTER": "otlp, console"}, {"traces": ["otlp_proto_http", "console"]}),
        (
            {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            {"traces": ["otlp_proto_grpc"]},
        ),
        (
            {
                "OTEL_TRACES_EXPORTER": "otlp",
                "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
                "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
            },
            {"traces": ["otlp_proto_http"]},
        ),
    ],
)
def test_standard_variables_choose_the_signals(variables: dict[str, str], expected: dict[str, list[str]]) -> None:
    assert chosen_exporters(variables) == expected


def modules_of_a_swarm(root: Path, **variables: str) -> set[str]:
    """Return the modules of a process that has run a task, with these variables."""
    code = (
        "import sys, anyio, fireswarm as fs\n"
        "@fs.skill('noop', 'nothing')\n"
        "async def noop(request):\n"
        "    return fs.SkillResult(summary='done')\n"
        "async def run():\n"
        "    async with fs.Swarm.local({'scout': [noop]}) as swarm:\n"
        "        await swarm.run('do nothing', role='scout', skill='noop')\n"
        "anyio.run(run)\n"
        "print(*sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, env=os.environ | variables, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_without_variables_nothing_of_the_sdk_is_imported(tmp_path: Path) -> None:
    known = modules_of_a_swarm(tmp_path)
    assert "fireswarm.signals.exporting" in known
    assert not {name for name in known if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter"))}
    assert "opentelemetry.sdk.trace" in modules_of_a_swarm(tmp_path, OTEL_TRACES_EXPORTER="otlp_unknown")


def test_process_that_is_copied_imports_what_its_copies_will_use() -> None:
    assert modules_to_import({}) == []
    assert modules_to_import({"OTEL_TRACES_EXPORTER": "otlp, zipkin", "OTEL_METRICS_EXPORTER": "console"}) == [
        "fireswarm.signals.open_telemetry",
        "opentelemetry.exporter.otlp.proto.http.trace_exporter",
        "opentelemetry.sdk.metrics.export",
    ]


@pytest.mark.anyio
@pytest.mark.parametrize("gone", ["opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http"])
async def test_extra_that_is_not_installed_is_one_warning(
    gone: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    find = importlib.util.find_spec

    def find_others(name: str, package: str | None = None) -> Any:
        if name == gone:
            raise ModuleNotFoundError(name)
        return find(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find_others)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", ADDRESS)
    async with exporting(Redactor()):
        assert telemetry_in_use.get() is None
    [warning] = caplog.messages
    assert f"{gone} is not installed" in warning and "opentelemetry-sdk" in warning and "install" in warning


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "there is no exporter zipkin of traces"),
        (
            {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "there is no exporter otlp_proto_grpc of traces",
        ),
        (
            {
                "OTEL_TRACES_EXPORTER": "otlp",
                "OTEL_PYTHON_EXPORTER_OTLP_HTTP_CREDENTIAL_PROVIDER": "gcp_http_credentials",
            },
            "the exporter otlp_proto_http of traces cannot be used",
        ),
        ({"OTEL_TRACES_EXPORTER": "console", "OTEL_BSP_MAX_QUEUE_SIZE": "0"}, "OpenTelemetry cannot start"),
    ],
)
async def test_exporter_that_cannot_be_used_is_a_warning(
    variables: dict[str, str], reason: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with caplog.at_level(logging.WARNING, "fireswarm"):
        async with exporting(Redactor()):
            telemetry = telemetry_in_use.get()
            if telemetry is not None:
                with telemetry.span("of nobody", {}):
                    telemetry.measure("fireswarm.turn.duration", 1.0, {})
    assert reason in caplog.text
    assert telemetry_in_use.get() is None
