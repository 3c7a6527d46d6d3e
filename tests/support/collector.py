"""A collector of OpenTelemetry on loopback: it takes OTLP over HTTP, and keeps what it got."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.http import HttpServer, Request, Response


@dataclass(frozen=True, slots=True)
class KeptSpan:
    """A span as it arrived; ids in hexadecimal, ``parent`` is "" for a root, times in nanoseconds."""

    name: str
    trace: str
    id: str
    parent: str
    attributes: Mapping[str, Any]
    failed: bool
    start: int
    end: int
    process: int
    service: str
    schema: str

    @property
    def operation(self) -> str:
        """The first word of its name."""
        return self.name.partition(" ")[0]


@dataclass(slots=True)
class OtlpCollector:
    """Takes every request, or answers none if it *hangs*."""

    hangs: bool = False
    requests: list[Request] = field(default_factory=list[Request])

    def __call__(self, request: Request) -> Response:
        self.requests.append(request)
        return Response(200, b"", hangs="before" if self.hangs else "")

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncGenerator[str]:
        """Serve inside the block; yields the endpoint."""
        async with HttpServer(self).serving() as address:
            yield address

    def spans(self) -> list[KeptSpan]:
        """All spans so far."""
        return list(self._spans())

    def _spans(self) -> Iterator[KeptSpan]:
        for body in self._bodies("/v1/traces"):
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                about = attributes_of(resource.resource)
                for scope in resource.scope_spans:
                    for span in scope.spans:
                        yield KeptSpan(
                            span.name,
                            span.trace_id.hex(),
                            span.span_id.hex(),
                            span.parent_span_id.hex(),
                            attributes_of(span),
                            span.status.code == 2,
                            span.start_time_unix_nano,
                            span.end_time_unix_nano,
                            about["process.pid"],
                            about["service.name"],
                            scope.schema_url,
                        )

    def points(self, metric: str) -> list[tuple[Mapping[str, Any], Any]]:
        """The data points of a metric, each with its attributes."""
        return [
            (attributes_of(point), point)
            for body in self._bodies("/v1/metrics")
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics
            for scope in resource.scope_metrics
            for found in scope.metrics
            if found.name == metric
            for point in getattr(found, str(found.WhichOneof("data"))).data_points
        ]

    def entries(self) -> list[Any]:
        """All log entries so far."""
        return [
            entry
            for body in self._bodies("/v1/logs")
            for resource in ExportLogsServiceRequest.FromString(body).resource_logs
            for scope in resource.scope_logs
            for entry in scope.log_records
        ]

    def _bodies(self, path: str) -> list[bytes]:
        return [request.body for request in self.requests if request.path == path]


def attributes_of(message: Any) -> dict[str, Any]:
    """The attributes of a span, a point or a resource, as Python values."""
    return {pair.key: _value(pair.value) for pair in message.attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    return [_value(each) for each in value.array_value.values] if kind == "array_value" else getattr(value, kind)
