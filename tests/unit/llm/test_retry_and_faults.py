"""Retries of model calls, the pauses between them, and the meaning of a provider's status."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fireswarm.errors import ModelRejected, ModelUnavailable
from fireswarm.llm.providers.faults import MAX_RETRY_AFTER_SECONDS, from_status, retry_after
from fireswarm.llm.retry import RetryPolicy
from fireswarm.settings.agent import RuntimeSettings


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529, 599])
def test_transient_status_is_retryable(status: int) -> None:
    error = from_status("x", status, "busy", {"retry-after": "3"})
    assert isinstance(error, ModelUnavailable)
    assert (error.status, error.retry_after, error.retryable) == (status, 3.0, True)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 413, 422, 451])
def test_other_status_is_final_with_advice(status: int) -> None:
    error = from_status("x", status, "")
    assert isinstance(error, ModelRejected)
    assert not error.retryable
    assert f"x answered {status}: no message (" in str(error)


def test_long_provider_message_is_truncated() -> None:
    assert len(str(from_status("x", 500, "m" * 100_000))) < 600


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "12"}, 12.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "21600"}, 21_600.0),
        ({"retry-after": "1e9"}, MAX_RETRY_AFTER_SECONDS),
        ({"retry-after": "inf"}, MAX_RETRY_AFTER_SECONDS),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00"}, 0.0),
        ({"retry-after": "Wed, 99 Oct 2015 07:28:00 GMT"}, None),
    ],
)
def test_retry_after_is_parsed(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_retry_after_date_gives_the_seconds_until_then() -> None:
    when = datetime.now(UTC) + timedelta(seconds=90)
    assert retry_after({"retry-after": format_datetime(when, usegmt=True)}) == pytest.approx(90, abs=3)


@settings(deadline=None)
@given(st.text(max_size=40))
def test_retry_after_survives_any_header(text: str) -> None:
    for name in ("retry-after", "retry-after-ms"):
        seconds = retry_after({name: text})
        assert seconds is None or 0 <= seconds <= MAX_RETRY_AFTER_SECONDS


@settings(deadline=None)
@given(
    st.integers(0, 20), st.floats(0, 60), st.floats(0, 600), st.integers(1, 25), st.none() | st.floats(0, 3_600),
    st.integers(),
)  # fmt: skip
def test_pauses_stay_within_their_bounds(
    retries: int, base: float, most: float, attempt: int, asked: float | None, seed: int
) -> None:
    policy = RetryPolicy(retries, base, most)
    pause = policy.pause(attempt, ModelUnavailable("x", retry_after=asked), random.Random(seed))
    if attempt > retries or (asked is not None and asked > most):
        assert pause is None
        return
    assert pause is not None
    ceiling = min(most, base * 2 ** (attempt - 1))
    if asked:
        assert asked <= pause <= asked * 1.1 + 1e-9
    else:
        assert 0 <= pause <= ceiling


def test_jitter_is_full_when_the_provider_requests_no_pause() -> None:
    policy, chance = RetryPolicy(3, 8.0, 8.0), random.Random(7)
    for asked in (None, 0.0):
        pauses = [policy.pause(1, ModelUnavailable("x", retry_after=asked), chance) or 0.0 for _ in range(400)]
        assert min(pauses) < 0.4
        assert max(pauses) > 7.6


def test_an_outage_is_retried_for_minutes_with_the_default_settings() -> None:
    runtime, chance = RuntimeSettings(), random.Random(7)
    policy = RetryPolicy(runtime.max_llm_retries, runtime.retry_base_delay_seconds, runtime.retry_max_delay_seconds)
    pauses = [policy.pause(attempt, ModelUnavailable("x"), chance) for attempt in range(1, 40)]
    assert 120 < sum(pause or 0.0 for pause in pauses) < 600 and pauses[-1] is None
    assert policy.pause(1, ModelUnavailable("x", retry_after=59.0), chance) is not None
