"""The receiver of signals that exports them with OpenTelemetry's SDK, which only this and ``log_entries`` import.

Spans, metrics and log entries are handed to threads of the SDK, which drop them if the collector is away or slow.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from importlib.metadata import entry_points
from typing import Any

from opentelemetry.context import Context
from opentelemetry.metrics import CallbackOptions, Histogram, Observation
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import (
    INVALID_SPAN,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    set_span_in_context,
    use_span,
)

from fireswarm.redaction import Redactor
from fireswarm.settings.packaged import __version__
from fireswarm.signals.current import Attributes
from fireswarm.signals.environment import CONTENT, is_true
from fireswarm.signals.ids import SpanIds
from fireswarm.signals.log_entries import LOGS_OF_EXPORTERS, EntryHandler
from fireswarm.signals.metrics import CLAIMS, HISTOGRAMS

CONVENTIONS = "https://opentelemetry.io/schemas/1.41.0"
"""Version of the semantic conventions that are emitted: the last one that has those of GenAI in it."""

NAME = "fireswarm"

_log = logging.getLogger(__name__)


class DerivedIds(RandomIdGenerator):
    """Gives the next span the ids that were set for it, and other spans random ones."""

    def __init__(self) -> None:
        self._next: ContextVar[SpanIds | None] = ContextVar("ids_of_next_span", default=None)

    @contextlib.contextmanager
    def giving(self, ids: SpanIds | None) -> Generator[None]:
        """Give *ids* to the span that is started inside the block."""
        token = self._next.set(ids)
        try:
            yield
        finally:
            self._next.reset(token)

    def generate_trace_id(self) -> int:
        """Return the id of the next trace."""
        ids = self._next.get()
        return super().generate_trace_id() if ids is None else ids.trace

    def generate_span_id(self) -> int:
        """Return the id of the next span."""
        ids = self._next.get()
        return super().generate_span_id() if ids is None else ids.span


@dataclass(frozen=True, slots=True)
class SdkSpan:
    """A span of the SDK that has not ended."""

    span: Span

    def add(self, attributes: Attributes) -> None:
        """Add attributes."""
        self.span.set_attributes(dict(attributes))

    def fail(self, error_type: str, message: str = "") -> None:
        """Mark the operation as failed."""
        self.span.set_attribute("error.type", error_type)
        self.span.set_status(StatusCode.ERROR, message or None)


class OpenTelemetry:
    """Exports with the exporters of each signal; what a signal without one records is dropped."""

    def __init__(self, exporters: Mapping[str, Sequence[Any]], redact: Redactor) -> None:
        self.captures_content = is_true(os.environ, CONTENT)
        for exporter in (exporter for given in exporters.values() for exporter in given):
            logging.getLogger(type(exporter).__module__).addFilter(LOGS_OF_EXPORTERS)
        resource, ids = describe_process(), DerivedIds()
        self._ids = ids
        self._tracing = TracerProvider(resource=resource, id_generator=ids, shutdown_on_exit=False)
        for exporter in exporters.get("traces", ()):
            self._tracing.add_span_processor(BatchSpanProcessor(exporter))
        readers = [PeriodicExportingMetricReader(exporter) for exporter in exporters.get("metrics", ())]
        self._metering = MeterProvider(readers, resource, shutdown_on_exit=False)
        self._logging = LoggerProvider(resource, shutdown_on_exit=False)
        for exporter in exporters.get("logs", ()):
            self._logging.add_log_record_processor(BatchLogRecordProcessor(exporter))
        self._handler = EntryHandler(self._logging, redact) if exporters.get("logs") else None
        self._traces, self._measures = bool(exporters.get("traces")), bool(readers)
        self._tracer = self._tracing.get_tracer(NAME, __version__, schema_url=CONVENTIONS)
        self._meter = self._metering.get_meter(NAME, __version__, schema_url=CONVENTIONS)
        if self._handler is not None:
            logging.getLogger().addHandler(self._handler)

    @cached_property
    def _histograms(self) -> Mapping[str, Histogram]:
        return {
            name: self._meter.create_histogram(
                name, how.unit, how.description, explicit_bucket_boundaries_advisory=how.bounds
            )
            for name, how in HISTOGRAMS.items()
        }

    @contextlib.contextmanager
    def span(
        self, name: str, attributes: Attributes, *, ids: SpanIds | None = None, is_client: bool = False
    ) -> Generator[SdkSpan]:
        """Record a span around a block; an exception marks it as failed."""
        if not self._traces:
            yield SdkSpan(INVALID_SPAN)
            return
        kind = SpanKind.CLIENT if is_client else SpanKind.INTERNAL
        with self._ids.giving(ids):
            span = self._tracer.start_span(name, self._parent_context(name, ids), kind, dict(attributes))
        opened = SdkSpan(span)
        with use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            try:
                yield opened
            except BaseException as error:  # raised again; a cancellation is an end too
                opened.fail(type(error).__name__)
                raise

    def report(
        self, name: str, attributes: Attributes, ids: SpanIds, start: datetime, end: datetime, error: str = ""
    ) -> None:
        """Record a span that has ended; *error* is the type of its error."""
        if not self._traces:
            return
        with self._ids.giving(ids):
            context = self._parent_context(name, ids)
            span = self._tracer.start_span(name, context, attributes=dict(attributes), start_time=_nanoseconds(start))
        if error:
            SdkSpan(span).fail(error)
        span.end(_nanoseconds(max(start, end)))

    def measure(self, metric: str, value: float, attributes: Attributes) -> None:
        """Add a value to a histogram."""
        if self._measures:
            self._histograms[metric].record(value, dict(attributes))

    def count_claims(self, role: str, claims: Callable[[], tuple[int, int]]) -> None:
        """Export the numbers of claims won and lost of a worker."""

        def observe(_: CallbackOptions) -> Iterable[Observation]:
            for result, number in zip(("won", "lost"), claims(), strict=True):
                yield Observation(number, {"gen_ai.agent.name": role, "fireswarm.result": result})

        self._meter.create_observable_counter(CLAIMS, [observe], "{claim}", "Attempts to claim a task.")

    def close(self, seconds: float) -> None:
        """Export what is left, and give up after *seconds*. Blocks; the threads of the SDK end with the process."""
        if self._handler is not None:
            logging.getLogger().removeHandler(self._handler)
        providers = (self._tracing, self._metering, self._logging)
        threads = [threading.Thread(target=provider.shutdown, daemon=True) for provider in providers]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + seconds
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        if any(thread.is_alive() for thread in threads):
            _log.warning("OpenTelemetry: the collector did not take everything within %g s: the rest is lost", seconds)

    def _parent_context(self, name: str, ids: SpanIds | None) -> Context | None:
        """Return the context of the parent in *ids*; without ids, None is that of the current span.

        The sampler decides by the trace's id, as it does in every other process.
        """
        if ids is None:
            return None
        if not ids.parent:
            return Context()
        sampled = self._tracing.sampler.should_sample(Context(), ids.trace, name).decision.is_sampled()
        flags = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)
        parent = SpanContext(ids.trace, ids.parent, is_remote=True, trace_flags=flags)
        return set_span_in_context(NonRecordingSpan(parent), Context())


def describe_process() -> Resource:
    """Return the attributes of this process, which those of the environment overrule."""
    own = Resource({"service.name": NAME, "service.version": __version__, "process.pid": os.getpid()})
    return Resource.create(dict(own.merge(OTELResourceDetector().detect()).attributes))


def load_exporters(chosen: Mapping[str, Sequence[str]]) -> dict[str, list[Any]]:
    """Return an exporter for each name that is installed; others are named in a warning."""
    return {
        signal: [made for name in names if (made := _load_exporter(signal, name)) is not None]
        for signal, names in chosen.items()
    }


def _load_exporter(signal: str, name: str) -> Any:
    for found in entry_points(group=f"opentelemetry_{signal}_exporter", name=name):
        try:
            return found.load()()
        except Exception as error:  # of any package, by a wrong variable: the work goes on without the signal
            _log.warning(
                "OpenTelemetry: the exporter %s of %s cannot be used, so they are dropped: %s", name, signal, error
            )
            return None
    _log.warning(
        "OpenTelemetry: there is no exporter %s of %s, so they are dropped: install a package with it, or use otlp "
        "over http/protobuf", name, signal
    )  # fmt: skip
    return None


def _nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000) * 1_000
