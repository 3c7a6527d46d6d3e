"""The histograms that are exported by OTLP. Bounds of those of the conventions are the conventions' own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MeasuredAs:
    """Unit, description and bounds of a histogram."""

    unit: str
    description: str
    bounds: Sequence[float]


OPERATION_DURATION = "gen_ai.client.operation.duration"
TOKEN_USAGE = "gen_ai.client.token.usage"
TURN_DURATION = "fireswarm.turn.duration"
CLAIMS = "fireswarm.claims"

HISTOGRAMS = {
    OPERATION_DURATION: MeasuredAs("s", "GenAI operation duration.", tuple(0.01 * 2**power for power in range(14))),
    TOKEN_USAGE: MeasuredAs(
        "{token}", "Number of input and output tokens used.", tuple(float(4**power) for power in range(14))
    ),
    TURN_DURATION: MeasuredAs(
        "s",
        "Length of a turn, from its start to the commit of its outcome.",
        (0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600),
    ),
}
"""Histograms by name."""
