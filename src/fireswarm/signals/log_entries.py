"""Log entries for OpenTelemetry: the handler that exports them, and the filter of those of the exporters."""

from __future__ import annotations

import logging
import time

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.context import get_current
from opentelemetry.sdk._logs import LoggerProvider

from fireswarm.redaction import Redactor

PAUSE_SECONDS = 60.0
"""Time between two entries of one exporter: it would log each attempt while the collector is away."""

SEVERITIES = {
    logging.DEBUG: ("DEBUG", SeverityNumber.DEBUG),
    logging.INFO: ("INFO", SeverityNumber.INFO),
    logging.WARNING: ("WARN", SeverityNumber.WARN),
    logging.ERROR: ("ERROR", SeverityNumber.ERROR),
    logging.CRITICAL: ("FATAL", SeverityNumber.FATAL),
}
"""Names and numbers of severities in OpenTelemetry."""


class EntryHandler(logging.Handler):
    """Exports the entries of this process without secrets; those of OpenTelemetry would cause further entries."""

    def __init__(self, provider: LoggerProvider, redact: Redactor) -> None:
        super().__init__()
        self._provider = provider
        self._redact = redact
        self._traceback = logging.Formatter()

    def filter(self, record: logging.LogRecord) -> bool | logging.LogRecord:
        """Leave out the entries of OpenTelemetry, and of the HTTP client below it."""
        return not record.name.startswith(("opentelemetry", "urllib3")) and super().filter(record)

    def emit(self, record: logging.LogRecord) -> None:
        """Hand an entry to the SDK."""
        level = max((known for known in SEVERITIES if known <= record.levelno), default=logging.DEBUG)
        text, number = SEVERITIES[level]
        attributes = {}
        if record.exc_info and record.exc_info[0] is not None:
            attributes["exception.type"] = record.exc_info[0].__name__
            attributes["exception.stacktrace"] = self._redact.clean(self._traceback.formatException(record.exc_info))
        self._provider.get_logger(record.name).emit(
            LogRecord(
                timestamp=int(record.created * 1e9),
                context=get_current(),
                severity_text=text,
                severity_number=number,
                body=self._redact.clean(record.getMessage()),
                attributes=attributes,
            )
        )


class OncePerMinute(logging.Filter):
    """Lets one entry pass in PAUSE_SECONDS."""

    def __init__(self) -> None:
        super().__init__()
        self._next = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True for an entry that is shown."""
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + PAUSE_SECONDS
        return True


LOGS_OF_EXPORTERS = OncePerMinute()
"""The filter of all exporters together."""
