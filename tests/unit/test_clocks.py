"""The server's time as workers estimate it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fireswarm.clocks import RESYNC_SECONDS, ServerClock

START = datetime(2026, 1, 1, tzinfo=UTC)


class Steady:
    """A steady clock that the test moves."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def __call__(self) -> float:
        return self.seconds


def test_first_observation_replaces_the_local_clock() -> None:
    clock = ServerClock()
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(seconds=1)
    clock.observe(START)
    assert timedelta(0) <= clock.now() - START < timedelta(seconds=1)


def test_setting_the_wall_clock_changes_nothing_after_the_first_observation(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ServerClock()
    clock.observe(START)

    class Changed(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:
            return datetime(2126, 1, 1, tzinfo=UTC)

    monkeypatch.setattr("fireswarm.clocks.datetime", Changed)
    assert clock.now() - START < timedelta(seconds=1)


@given(st.lists(st.tuples(st.floats(0, 20), st.floats(0, 5)), min_size=1, max_size=30))
def test_estimate_never_runs_ahead_of_the_server(steps: list[tuple[float, float]]) -> None:
    """Each response takes some time on its way, so the estimate lags by at most the latency of the last minute."""
    steady = Steady()
    clock = ServerClock(steady)
    for passed, latency in steps:
        steady.seconds += passed + latency
        server = START + timedelta(seconds=steady.seconds)
        clock.observe(server - timedelta(seconds=latency))
        assert clock.now() <= server + timedelta(microseconds=5)
        assert server - clock.now() <= timedelta(seconds=latency, microseconds=5)


@given(st.lists(st.floats(0, 30), min_size=1, max_size=30), st.floats(1, 3_600), st.floats(0, 100))
def test_a_response_that_waited_while_the_process_stood_still_does_not_set_the_clock_back(
    steps: list[float], idle: float, still: float
) -> None:
    """It was sent before the standstill, and is read after it; the estimate is old or young."""
    steady = Steady()
    clock = ServerClock(steady)
    for passed in steps:
        steady.seconds += passed
        clock.observe(START + timedelta(seconds=steady.seconds))
    sent = steady.seconds = steady.seconds + idle
    steady.seconds += still
    clock.observe(START + timedelta(seconds=sent))
    assert abs(clock.now() - (START + timedelta(seconds=steady.seconds))) <= timedelta(microseconds=5)


def test_a_server_that_was_set_back_is_followed_within_two_windows() -> None:
    steady = Steady()
    clock = ServerClock(steady)
    clock.observe(START + timedelta(seconds=steady.seconds))
    back = START - timedelta(seconds=300)
    for _ in range(int(2 * RESYNC_SECONDS / 10) + 2):
        steady.seconds += 10.0
        clock.observe(back + timedelta(seconds=steady.seconds))
    assert abs(clock.now() - (back + timedelta(seconds=steady.seconds))) <= timedelta(microseconds=5)
