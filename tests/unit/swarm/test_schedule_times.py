"""Times of schedules: cron expressions in time zones, at changes of daylight saving, and after missed times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fireswarm.swarm.schedules.times import (
    MAX_COUNTED,
    check_cron,
    describe_cron,
    find_due,
    next_time,
    times_after,
)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def shown(cron: str, timezone: str, after: str, number: int = 3) -> list[str]:
    return [f"{at:%d %H:%M}" for at in islice(times_after(cron, timezone, utc(after)), number)]


@pytest.mark.parametrize(
    ("cron", "after", "expected"),
    [
        ("30 2 * * *", "2026-03-28T00:00", ["28 01:30", "29 01:00", "30 00:30"]),  # 02:30 does not exist on the 29th
        ("30 2 * * *", "2026-10-24T00:00", ["24 00:30", "25 00:30", "26 01:30"]),  # 02:30 comes twice on the 25th
        ("30 2 * * *", "2026-10-25T00:45", ["26 01:30", "27 01:30", "28 01:30"]),  # between the two
        ("30 2 * * *", "2026-10-25T01:10", ["26 01:30", "27 01:30", "28 01:30"]),  # in the second hour
        ("*/30 * * * *", "2026-10-25T00:00", ["25 00:30", "25 01:00", "25 01:30"]),  # intervals go on through it
        ("0 6 * * 1-5", "2026-03-27T06:00", ["30 04:00", "31 04:00", "01 04:00"]),  # 05:00 UTC in winter
    ],
)
def test_times_in_berlin_when_the_clock_changes(cron: str, after: str, expected: list[str]) -> None:
    assert shown(cron, "Europe/Berlin", after) == expected


def test_times_of_other_zones_and_rare_days() -> None:
    assert shown("0 9 * * 1#1", "Asia/Tokyo", "2026-01-01T00:00", 2) == ["05 00:00", "02 00:00"]
    assert next_time("0 0 29 2 *", "UTC", utc("2026-01-01T00:00")) == utc("2028-02-29T00:00")
    assert next_time("0 0 L * *", "UTC", utc("2026-01-31T00:00")) == utc("2026-02-28T00:00")


@pytest.mark.parametrize(
    "cron",
    ["", "* * * *", "* * * * * *", "60 * * * *", "@daily", "0 0 30 2 *", "5-1 * * * *", "*/0 * * * *", "* " * 500],
)
def test_what_is_no_cron_expression_is_refused(cron: str) -> None:
    with pytest.raises(ValueError, match="cron expression|has to be minute|no year has"):
        check_cron(cron)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="0123456789*/,-#LWMONSUJAN ²٣", max_size=30))
def test_any_text_is_a_cron_expression_or_a_clear_error(text: str) -> None:
    try:
        cron = check_cron(text)
    except ValueError as error:
        assert str(error)
    else:
        assert next_time(cron, "UTC", utc("2026-01-01T00:00")) > utc("2026-01-01T00:00")
        assert describe_cron(cron).startswith(("At ", "Every "))


_CRONS = ("* * * * *", "*/7 * * * *", "30 2 * * *", "0 */2 * * *", "15 1-3 * * 0", "0,30 0-4 * * *")
_ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(_CRONS),
    st.sampled_from(_ZONES),
    st.sampled_from(("2026-03-08", "2026-03-29", "2026-04-05", "2026-10-04", "2026-10-25", "2026-11-01")),
    st.integers(-36 * 60, 36 * 60),
)
def test_times_are_the_same_from_wherever_one_looks(cron: str, zone: str, day: str, minutes: int) -> None:
    start = utc(f"{day}T00:00") - timedelta(days=2)
    now = utc(f"{day}T00:00") + timedelta(minutes=minutes, seconds=7)
    expected = next(at for at in times_after(cron, zone, start) if at > now)
    assert next_time(cron, zone, now) == expected


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(_CRONS[:2]), st.sampled_from(_ZONES), st.integers(0, 36 * 60))
def test_the_latest_of_many_missed_times_is_one_of_them(cron: str, zone: str, minutes: int) -> None:
    first = next_time(cron, zone, utc("2026-10-01T00:00"))
    now = utc("2026-10-25T00:00") + timedelta(minutes=minutes, seconds=30)
    due = find_due(cron, zone, first, now)
    assert due.missed > MAX_COUNTED
    assert due.latest <= now < next_time(cron, zone, due.latest)
    assert due.describe() == "more than 1,000 earlier times were left out: nothing ran then"


def test_missed_times_are_counted() -> None:
    first = utc("2026-01-01T06:00")
    assert find_due("0 6 * * *", "UTC", first, utc("2026-01-01T06:00")).describe() == ""
    assert find_due("0 6 * * *", "UTC", first, utc("2026-01-03T05:00")).latest == utc("2026-01-02T06:00")
    assert find_due("0 6 * * *", "UTC", first, utc("2026-01-02T05:00")).missed == 0
    assert find_due("0 6 * * *", "UTC", first, utc("2026-01-02T07:00")).describe().startswith("1 earlier time was")
    assert find_due("0 6 * * *", "UTC", first, utc("2026-01-09T07:00")).describe().startswith("8 earlier times were")


def test_times_have_words() -> None:
    assert describe_cron("0 6 * * 1-5") == "At 06:00 on Monday through Friday"
