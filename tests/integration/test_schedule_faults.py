"""Faulty, hostile and many schedules: each is noted once, and costs a process little."""

from __future__ import annotations

from typing import Any

import pytest

from fireswarm.contracts.ports import Snapshot
from fireswarm.errors import InvalidInput, StoreUnavailable
from fireswarm.redaction import Redactor
from fireswarm.storage.documents import queries
from fireswarm.swarm.schedules import duty
from fireswarm.swarm.schedules.duty import ScheduleDuty
from fireswarm.swarm.schedules.schedule import Schedule, parse_schedule
from tests.support.schedules import MINUTE, by_hand, document, edit, occasions, settled, utc
from tests.support.swarm import SwarmRig
from tests.support.working import working

pytestmark = pytest.mark.anyio


def counted_commits(swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets the paths of the schedules that are written from now on."""
    paths: list[str] = []
    real = swarm.store.commit

    async def commit(writes: Any, **more: Any) -> Any:
        paths.extend(write.path for write in writes if write.path.startswith("agent_schedules/"))
        return await real(writes, **more)

    monkeypatch.setattr(swarm.store, "commit", commit)
    return paths


async def test_a_malformed_schedule_is_noted_once_also_if_its_fault_quotes_a_secret(
    swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "Zq8mPx2vv91kkLw04"
    monkeypatch.setattr(swarm.store, "_redact", Redactor([secret]))
    await by_hand(swarm, "evil", cron="0 6 * * *", timezone=f"password={secret}", task={"objective": "x"})
    await by_hand(swarm, "long", cron="0 6 * * *", task={"k" * 415 + secret: 1, "objective": "x"})
    commits = counted_commits(swarm, monkeypatch)
    async with working(swarm.core):
        await swarm.clock.advance(5 * MINUTE)
    assert sorted(commits) == ["agent_schedules/evil", "agent_schedules/long"]
    for name in ("evil", "long"):
        note = (await document(swarm, name))["note"]
        assert note.startswith("set aside: ") and secret[:6] not in note


async def test_a_schedule_that_nobody_fires_is_named_and_a_next_time_by_hand_is_kept(swarm: SwarmRig) -> None:
    await by_hand(swarm, "odd", cron="never", task={"objective": "x"})
    await by_hand(swarm, "nobody", cron="0 6 * * *", task={"objective": "x"})
    await edit(swarm, "nobody", assigned_to="painter")
    await by_hand(
        swarm,
        "soon",
        cron="0 6 * * *",
        task={"objective": "x", "skill": "noop"},
        next_at=utc("2026-01-01T00:03"),
    )
    idle = dict(await swarm.client.schedules.find_idle())
    assert sorted(idle) == ["nobody", "odd"]
    assert "no role painter" in idle["nobody"] and "cron" in idle["odd"]
    async with working(swarm.core) as worker:
        await swarm.clock.advance(4 * MINUTE)
        await settled(swarm, worker, 1)
    assert await occasions(swarm) == ["2026-01-01T00:03"]
    assert (await document(swarm, "soon"))["next_at"] == utc("2026-01-01T06:00")


async def test_a_fault_is_noted_when_the_store_is_back_and_forges_no_line_of_the_log(
    swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await by_hand(swarm, "a\nERROR forged \x1b[2J", cron="never", task={"objective": "x"})
    reader, found = ScheduleDuty(swarm.core, "scout"), await swarm.store.query(queries.schedules_of("scout"))

    async def fail(writes: Any, **more: Any) -> Any:
        raise StoreUnavailable("away")

    with monkeypatch.context() as patched:
        patched.setattr(swarm.store, "commit", fail)
        with pytest.raises(StoreUnavailable):
            await reader.read_all(found)
    await reader.read_all(found)
    [stored] = await swarm.store.query(queries.schedules_of("scout"))
    assert stored.data["note"].startswith("set aside: ")
    said = [record.message for record in caplog.records if record.name == duty.__name__]
    assert len(said) == 2 and all("forged" in text and "\n" not in text and "\x1b" not in text for text in said)


async def test_two_versions_that_judge_a_schedule_differently_do_not_overwrite_each_other_forever(
    swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    await by_hand(swarm, "new", cron="0 6 * * *", task={"objective": "x"})
    older, newer = ScheduleDuty(swarm.core, "scout"), ScheduleDuty(swarm.core, "scout")
    commits = counted_commits(swarm, monkeypatch)

    def refuse(snapshot: Snapshot) -> Schedule:
        raise InvalidInput("this version does not know the field")

    async def read_as_older() -> None:
        with monkeypatch.context() as patched:
            patched.setattr(duty, "parse_schedule", refuse)
            await older.read_all(await swarm.store.query(queries.schedules_of("scout")))

    for _ in range(5):
        await read_as_older()
        await newer.read_all(await swarm.store.query(queries.schedules_of("scout")))
        await newer.fire_due()
    assert len(commits) == 4, "each noted what a person wrote, and what the other one added to it"
    stored = await document(swarm, "new")
    assert (stored["note"], stored["next_at"]) == ("", utc("2026-01-01T06:00"))


async def test_many_schedules_are_each_parsed_once_for_each_of_their_changes(
    swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        await by_hand(swarm, f"n{number}", cron="0 6 * * *", task={"objective": "x"}, note=f"{number}")
        await by_hand(swarm, f"odd{number}", cron="never", task={"objective": "x"})
    parsed: list[str] = []

    def parse(snapshot: Snapshot) -> Schedule:
        parsed.append(snapshot.path)
        return parse_schedule(snapshot)

    monkeypatch.setattr(duty, "parse_schedule", parse)
    async with working(swarm.core):
        await swarm.clock.advance(5 * MINUTE)
    assert len(parsed) <= 3 * 80
