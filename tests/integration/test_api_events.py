"""Event streams: they keep order, resume after a break, stay alive while idle, and end when their task has ended."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from fireswarm.api.stream import BEAT_SECONDS, StreamPosition
from fireswarm.contracts.skills.skill import PlannedTask
from fireswarm.contracts.swarm.outcome import Handoff
from fireswarm.contracts.swarm.run import RunStatus
from fireswarm.contracts.swarm.task import TaskResult
from fireswarm.runs.sinks.pages import PAGE_EVENTS
from fireswarm.swarm.records.run_follower import TICK_SECONDS
from tests.support.api import Api, Stream, open_api, streaming
from tests.support.swarm import SwarmRig, done, open_test_swarm
from tests.support.working import eventually

pytestmark = pytest.mark.anyio


@pytest.fixture
async def api() -> AsyncGenerator[Api]:
    async with open_test_swarm(session="s1") as swarm, open_api(swarm) as opened:
        yield opened


async def work(swarm: SwarmRig, *notes: str) -> None:
    """Claim a task, note what happens, and settle it."""
    held = await swarm.claim_one()
    journal = await swarm.journal(held)
    for note in notes:
        journal.note(note)
        await journal.flush()
    outcome = done()
    await swarm.board.settle(held, outcome, journal.closing(RunStatus.COMPLETED, "done", outcome.result, None))


async def read_all(api: Api, path: str, last: str | None = None) -> Stream:
    """Read a stream to its end."""
    async with streaming(api, path, last) as stream:
        await eventually(api.swarm, lambda: stream.ended, "the end")
    return stream


async def test_task_stream_contains_all_events_from_queued_to_end(api: Api) -> None:
    task = await api.swarm.submit()
    async with streaming(api, f"/v1/events?task={task.task_id}") as stream:
        await eventually(api.swarm, lambda: stream.told() == ["queued"], "the first event")
        await work(api.swarm, "looked", "thought")
        await eventually(api.swarm, lambda: stream.ended, "the end")
    assert stream.status == 200
    told = stream.told()
    assert [word for word in told if word in ("queued", "in_progress", "done", "end")][-2:] == ["done", "end"]
    assert [word for word in told if word in ("looked", "thought")] == ["looked", "thought"]
    numbers = [data["number"] for _, kind, data in stream.events if kind == "run"]
    assert numbers == list(range(1, len(numbers) + 1))


async def test_stream_resumed_at_any_event_neither_loses_nor_repeats_events(api: Api) -> None:
    task = await api.swarm.submit()
    await work(api.swarm, *(f"note-{number}" for number in range(PAGE_EVENTS * 2 + 3)))
    path = f"/v1/events?task={task.task_id}"
    stream = await read_all(api, path)
    whole = [(kind, data) for _, kind, data in stream.events]
    for at in (0, 5, PAGE_EVENTS + 1, len(whole) - 2):
        rest = await read_all(api, path, stream.events[at][0])
        assert [(kind, data) for _, kind, data in rest.events] == whole[at + 1 :]
    answer = await api.call("GET", path, headers={"Last-Event-ID": stream.events[-1][0]})
    assert answer.status_code == 204


async def test_events_of_a_long_run_are_streamed_while_it_works(api: Api) -> None:
    task = await api.swarm.submit()
    held = await api.swarm.claim_one()
    journal = await api.swarm.journal(held)
    async with streaming(api, f"/v1/events?task={task.task_id}") as stream:
        for number in range(PAGE_EVENTS + 4):
            journal.note(f"note-{number}")
            await journal.flush()
        await api.swarm.clock.advance(TICK_SECONDS * 2)
        last = f"note-{PAGE_EVENTS + 3}"
        await eventually(api.swarm, lambda: last in stream.told(), "the last event")
    assert [word for word in stream.told() if word.startswith("note")] == [
        f"note-{number}" for number in range(PAGE_EVENTS + 4)
    ]


async def test_task_stream_includes_children_but_no_other_tasks(api: Api) -> None:
    task = await api.swarm.submit()
    held = await api.swarm.claim_one()
    planned = PlannedTask(key="one", assigned_to="scout", objective="look")
    async with streaming(api, f"/v1/events?task={task.task_id}") as stream:
        await api.swarm.settle(held, Handoff((planned,), resume=True, result=TaskResult()))
        await api.swarm.submit("something else")
        child = (await api.swarm.task(task.task_id)).children[0]
        await eventually(api.swarm, lambda: child in stream.text, "the child")
    assert {data["chain_id"] for _, _, data in stream.events} == {task.task_id}


async def test_session_stream_starts_now_and_resumes_after_a_break(api: Api) -> None:
    await api.swarm.submit("before")
    await work(api.swarm, "earlier")
    async with streaming(api, "/v1/events") as stream:
        await eventually(api.swarm, lambda: "id: " in stream.text, "the beginning")
        first = await api.swarm.submit("first")
        await api.swarm.submit("of another session", session="other", role="executor")
        await eventually(api.swarm, lambda: len(stream.events) == 1, "the first task")
    assert "earlier" not in stream.told() and stream.events[0][2]["task_id"] == first.task_id
    await work(api.swarm, "meanwhile")
    async with streaming(api, "/v1/events", last=stream.events[-1][0]) as rest:
        await eventually(api.swarm, lambda: "done" in rest.told() and "meanwhile" in rest.told(), "what was missed")
        assert not rest.ended
    assert "earlier" not in rest.told() and rest.told().count("meanwhile") == 1


async def test_session_stream_interrupted_before_its_first_event_loses_nothing(api: Api) -> None:
    async with streaming(api, "/v1/events") as stream:
        await eventually(api.swarm, lambda: "id: " in stream.text, "a place to go on from")
    assert stream.events == []
    last = stream.text.partition("id: ")[2].partition("\n")[0]
    await api.swarm.submit("meanwhile")
    async with streaming(api, "/v1/events", last) as rest:
        await eventually(api.swarm, lambda: rest.told() == ["queued"], "what was missed")


async def test_reaped_run_is_not_repeated_when_a_stream_resumes(api: Api) -> None:
    await api.swarm.submit("first")
    held = await api.swarm.claim_one()
    journal = await api.swarm.journal(held)
    for number in range(PAGE_EVENTS + 2):
        journal.note(f"note-{number}")
        await journal.flush()
    await api.swarm.clock.advance(api.swarm.board.rules.lease_seconds + 1)
    await api.swarm.board.sweep("scout")
    async with streaming(api, "/v1/events") as stream:
        await eventually(api.swarm, lambda: "id: " in stream.text, "a place to go on from")
    last = stream.text.partition("id: ")[2].partition("\n")[0]
    await api.swarm.submit("second")
    async with streaming(api, "/v1/events", last) as rest:
        await eventually(api.swarm, lambda: rest.told() == ["queued"], "what was missed")
        await api.swarm.clock.settle()
    assert rest.told() == ["queued"]


async def test_idle_stream_is_kept_alive_and_ends_when_the_server_stops(api: Api) -> None:
    async with streaming(api, "/v1/events") as stream:
        await eventually(api.swarm, lambda: stream.text.startswith("retry: "), "the beginning")
        await api.swarm.clock.advance(BEAT_SECONDS * 2 + 1)
        assert stream.text.count(": beat\n\n") == 2
        api.service.stopping.set()
        await eventually(api.swarm, lambda: stream.ended, "the end")


async def test_secrets_are_not_streamed(api: Api) -> None:
    task = await api.swarm.submit()
    async with streaming(api, f"/v1/events?task={task.task_id}") as stream:
        await work(api.swarm, "said sk-ant-0123456789abcdefghij")
        await eventually(api.swarm, lambda: stream.ended, "the end")
    assert "sk-ant" not in stream.text and "[redacted]" in stream.text


@pytest.mark.parametrize("broken", ["x", "bnVsbA", "WzEsMiwzLDRd", "W10"])
async def test_malformed_last_event_id_is_rejected(api: Api, broken: str) -> None:
    assert await api.problem("GET", "/v1/events", last_event_id=broken) == (422, "invalid_input")


def test_stream_position_survives_encoding_and_decoding() -> None:
    place = StreamPosition(None, "t1", {"a": 3}, True)
    assert StreamPosition.decode(place.encode()) == place
