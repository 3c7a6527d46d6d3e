"""Requests that wait for a task: until its end or a question, until any change, or until the time is over."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

import anyio
import httpx2
import pytest

from fireswarm.api import session
from fireswarm.api.idempotency import CLAIM_SECONDS
from fireswarm.api.reading.long_poll import MAX_WAIT_SECONDS
from fireswarm.contracts.skills.skill import PlannedTask, Question
from fireswarm.contracts.swarm.outcome import Handoff, Waiting
from fireswarm.contracts.swarm.task import StatusReason, TaskResult
from tests.support.api import HEADERS, Api, Stream, open_api, serving, streaming
from tests.support.patience import PATIENCE_SECONDS
from tests.support.swarm import SwarmRig, done, open_test_swarm
from tests.support.working import eventually

pytestmark = pytest.mark.anyio

ASKED = Waiting(StatusReason.INPUT_REQUIRED, "where?", (Question(name="path", description="Which folder?"),))


@pytest.fixture
async def api() -> AsyncGenerator[Api]:
    async with open_test_swarm(session="s1") as swarm, open_api(swarm) as opened:
        yield opened


def listeners(swarm: SwarmRig) -> int:
    """Return how many listeners the store serves."""
    return len(swarm.database.hub._streams)  # pyright: ignore[reportPrivateUsage] - no client may ask


async def begin_to_wait(api: Api, stream: Stream) -> None:
    await eventually(api.swarm, lambda: listeners(api.swarm) == 1, "a listener")
    await api.swarm.clock.settle()
    assert not stream.ended


async def end_of(api: Api, stream: Stream) -> Any:
    await eventually(api.swarm, lambda: stream.ended, "the response")
    await eventually(api.swarm, lambda: listeners(api.swarm) == 0, "the end of the listener")
    assert api.service.streams.total() == 0
    return json.loads(stream.text) if stream.text else None


async def test_a_read_that_waits_returns_the_ended_task(api: Api) -> None:
    task = await api.swarm.submit()
    async with streaming(api, f"/v1/tasks/{task.task_id}?wait=60") as stream:
        await begin_to_wait(api, stream)
        held = await api.swarm.claim_one()
        await begin_to_wait(api, stream)
        await api.swarm.settle(held, done("all counted"))
        shown = await end_of(api, stream)
    assert stream.status == 200 and shown["status"] == "done" and shown["result"]["summary"] == "all counted"
    assert (await api.get(f"/v1/tasks/{task.task_id}?wait=60")) == shown  # at once: no time passes here


async def test_a_read_that_waits_returns_when_a_task_of_the_objective_needs_a_person(api: Api) -> None:
    task = await api.swarm.submit()
    planned = PlannedTask(key="one", assigned_to="scout", objective="look")
    async with streaming(api, f"/v1/tasks/{task.task_id}?wait=60") as stream:
        await begin_to_wait(api, stream)
        await api.swarm.settle(await api.swarm.claim_one(), Handoff((planned,), resume=True, result=TaskResult()))
        await begin_to_wait(api, stream)
        await api.swarm.settle(await api.swarm.claim_one(), ASKED)
        shown = await end_of(api, stream)
    assert (shown["status"], shown["status_reason"]) == ("blocked", "delegating")
    [child] = shown["children"]
    asked = await api.get(f"/v1/tasks/{child}?wait=60")
    assert (asked["status_reason"], [question["name"] for question in asked["questions"]]) == (
        "input_required",
        ["path"],
    )


async def test_a_read_returns_the_task_as_it_is_when_the_time_is_over(api: Api) -> None:
    task = await api.swarm.submit()
    async with streaming(api, f"/v1/tasks/{task.task_id}?wait=7.5") as stream:
        await begin_to_wait(api, stream)
        await api.swarm.clock.advance(7.4)
        assert not stream.ended
        await api.swarm.clock.advance(0.1)
        shown = await end_of(api, stream)
    assert stream.status == 200 and shown["status"] == "queued"


async def test_a_client_that_leaves_frees_its_listener(api: Api) -> None:
    task = await api.swarm.submit()
    async with streaming(api, f"/v1/tasks/{task.task_id}?wait=60") as stream:
        await begin_to_wait(api, stream)
        assert api.service.streams.total() == 1
    assert api.service.streams.total() == 0
    await eventually(api.swarm, lambda: listeners(api.swarm) == 0, "the end of the listener")


async def test_a_connection_that_closes_frees_its_listener() -> None:
    async with (
        open_test_swarm(session="s1") as swarm,
        serving(swarm) as port,
        httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=HEADERS, timeout=PATIENCE_SECONDS) as client,
    ):
        task = await swarm.submit()
        head = f"GET /v1/tasks/{task.task_id}?wait=60 HTTP/1.1\r\nHost: localhost\r\n"
        with anyio.fail_after(PATIENCE_SECONDS):
            async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                await stream.send(f"{head}Authorization: {HEADERS['Authorization']}\r\n\r\n".encode())
                while listeners(swarm) == 0:
                    await client.get("/v1/capabilities")
            while listeners(swarm):  # the server learns a moment later that a connection was closed
                await client.get("/v1/capabilities")


async def test_requests_that_wait_are_answered_when_the_server_stops(api: Api) -> None:
    task = await api.swarm.submit()
    async with streaming(api, f"/v1/tasks/{task.task_id}?wait=60") as stream:
        await begin_to_wait(api, stream)
        api.service.stopping.set()
        assert (await end_of(api, stream))["status"] == "queued"


async def test_with_its_tag_a_read_returns_what_has_changed_or_304_at_the_end(api: Api) -> None:
    task = await api.swarm.submit()
    path = f"/v1/tasks/{task.task_id}"
    first = await api.call("GET", path)
    known = {"If-None-Match": first.headers["etag"]}
    answers: list[httpx2.Response] = []

    async def read() -> None:
        answers.append(await api.call("GET", f"{path}?wait=30", headers=known))

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        await eventually(api.swarm, lambda: listeners(api.swarm) == 1, "a listener")
        await api.swarm.submit("something else")
        await api.swarm.clock.settle()
        assert not answers
        await api.swarm.claim_one()
        await eventually(api.swarm, lambda: len(answers) == 1, "the changed task")
        assert (answers[0].status_code, answers[0].json()["status"]) == (200, "in_progress")
        await read()
        assert answers.pop().json() == answers[0].json()  # at once: the tag is of an older version
        known["If-None-Match"] = f'"other", W/{answers[0].headers["etag"]}'
        group.start_soon(read)
        await eventually(api.swarm, lambda: listeners(api.swarm) == 1, "a listener")
        await api.swarm.clock.advance(30)
        await eventually(api.swarm, lambda: len(answers) == 2, "the end of the time")
    assert (answers[1].status_code, answers[1].content) == (304, b"")
    assert answers[1].headers["etag"] == answers[0].headers["etag"]
    await eventually(api.swarm, lambda: listeners(api.swarm) == 0, "the end of the listener")


async def test_a_submission_that_waits_returns_the_ended_task_and_replays_it(api: Api) -> None:
    sent = {"objective": "count", "role": "scout"}
    answers: list[httpx2.Response] = []

    async def submit() -> None:
        answers.append(await api.call("POST", "/v1/tasks?wait=60", sent, headers={"Idempotency-Key": "once"}))

    async with anyio.create_task_group() as group:
        group.start_soon(submit)
        await eventually(api.swarm, lambda: listeners(api.swarm) == 1, "a listener")
        await api.swarm.settle(await api.swarm.claim_one(), done("counted"))
        await eventually(api.swarm, lambda: len(answers) == 1, "the response")
    assert answers[0].status_code == 201 and answers[0].json()["result"]["summary"] == "counted"
    await submit()
    assert answers[1].content == answers[0].content and answers[1].headers["idempotency-replayed"] == "true"
    known = await api.call("POST", "/v1/tasks?wait=60", sent)
    assert known.status_code == 200 and known.json()["status"] == "done"


async def test_a_submission_whose_client_leaves_is_kept_for_its_repetition(api: Api) -> None:
    sent = {"objective": "count", "role": "scout"}
    headers = {"Idempotency-Key": "once", "Content-Type": "application/json"}
    body = json.dumps(sent).encode()
    async with streaming(api, "/v1/tasks?wait=60", method="POST", body=body, headers=headers):
        await eventually(api.swarm, lambda: listeners(api.swarm) == 1, "a listener")
    assert api.service.streams.total() == 0
    again = await api.call("POST", "/v1/tasks?wait=60", sent, headers=headers)
    assert again.status_code == 201 and again.headers["idempotency-replayed"] == "true"
    assert len((await api.get("/v1/tasks"))["items"]) == 1


async def test_too_many_waiting_requests_are_refused_before_they_submit(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "MAX_STREAMS_OF_CALLER", 1)
    task = await api.swarm.submit()
    async with streaming(api, f"/v1/tasks/{task.task_id}?wait=60") as stream:
        await begin_to_wait(api, stream)
        path = f"/v1/tasks/{task.task_id}?wait=1"
        assert await api.problem("GET", path) == (429, "too_many_streams")
        sent = {"objective": "not submitted", "role": "scout"}
        assert await api.problem("POST", "/v1/tasks?wait=1", sent) == (429, "too_many_streams")
        assert (await api.get(f"/v1/tasks/{task.task_id}?wait=0"))["status"] == "queued"
        assert len((await api.get("/v1/tasks"))["items"]) == 1


@pytest.mark.parametrize("wait", ["-1", "60.5", "61", "nan", "inf", "soon", ""])
async def test_waits_out_of_bounds_are_refused(api: Api, wait: str) -> None:
    task = await api.swarm.submit()
    assert await api.problem("GET", f"/v1/tasks/{task.task_id}?wait={wait}") == (422, "invalid_request")
    sent = {"objective": "not submitted", "role": "scout"}
    assert await api.problem("POST", f"/v1/tasks?wait={wait}", sent) == (422, "invalid_request")
    assert await api.problem("GET", "/v1/tasks/none?wait=60") == (404, "not_found")
    assert len((await api.get("/v1/tasks"))["items"]) == 1


def test_a_claimed_key_outlives_the_longest_wait() -> None:
    assert CLAIM_SECONDS > MAX_WAIT_SECONDS
