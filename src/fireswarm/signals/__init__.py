"""Traces, metrics and logs for OpenTelemetry, if its standard environment variables name a receiver."""
