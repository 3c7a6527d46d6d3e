"""Filters of the list of tasks: reason, time of the last change, and words of the objective."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import datetime, timedelta
from urllib.parse import quote, urlencode

import pytest

from fireswarm.api.reading import task_pages
from fireswarm.contracts.ports import Create
from fireswarm.contracts.skills.skill import Question
from fireswarm.contracts.swarm.outcome import Failed, Waiting
from fireswarm.contracts.swarm.task import StatusReason
from tests.support.api import Api, open_api
from tests.support.swarm import open_test_swarm

pytestmark = pytest.mark.anyio

SECRET = "hunter2-hunter2-hunter2"


@pytest.fixture
async def api() -> AsyncGenerator[Api]:
    async with open_test_swarm(session="s1") as swarm, open_api(swarm, secrets=(SECRET,)) as opened:
        yield opened


async def found(api: Api, **filters: str) -> list[str]:
    """Return the objectives of the first page."""
    return [item["objective"] for item in (await api.get(f"/v1/tasks?{urlencode(filters)}"))["items"]]


async def read_all(api: Api, **filters: str) -> tuple[list[str], int]:
    """Return the objectives of all pages, and their number."""
    page = await api.get(f"/v1/tasks?{urlencode(filters)}")
    objectives, pages = [item["objective"] for item in page["items"]], 1
    while page["next_cursor"]:
        page = await api.get(f"/v1/tasks?{urlencode({**filters, 'cursor': page['next_cursor']})}")
        objectives, pages = [*objectives, *(item["objective"] for item in page["items"])], pages + 1
    return objectives, pages


async def test_tasks_are_filtered_by_the_reason_of_their_block(api: Api) -> None:
    asked = Waiting(StatusReason.INPUT_REQUIRED, "where?", (Question(name="path", description="Which folder?"),))
    for objective, outcome in (("fails", Failed("no such file")), ("asks", asked)):
        await api.swarm.submit(objective)
        await api.swarm.settle(await api.swarm.claim_one(), outcome)
    await api.swarm.submit("waits", role="executor")
    assert await found(api, reason="dead_letter") == ["fails"]
    assert await found(api, reason="input_required", status="blocked", role="scout") == ["asks"]
    assert await found(api, reason="input_required", role="executor") == []
    assert await api.problem("GET", "/v1/tasks?reason=tired") == (422, "invalid_request")


async def test_tasks_are_filtered_by_the_time_of_their_last_change(api: Api) -> None:
    times: list[datetime] = []
    for objective in ("first", "second", "third"):
        task = await api.swarm.submit(objective)
        shown = await api.get(f"/v1/tasks/{task.task_id}")  # the time of the store, as a client sees it
        times.append(datetime.fromisoformat(shown["updated_at"]))
        await api.swarm.clock.advance(60)
    first, second, third = (time.isoformat() for time in times)
    assert await found(api, since=second) == ["third", "second"]
    assert await found(api, until=second) == ["first"]
    assert await found(api, since=first, until=third, status="queued") == ["second", "first"]
    assert await found(api, since=third, until=first) == []
    zone = (times[1] + timedelta(hours=2)).isoformat().replace("+00:00", "+02:00")
    assert await found(api, since=zone) == ["third", "second"]
    objectives, pages = await read_all(api, since=first, until=third, limit="1")
    assert (objectives, pages) == (["second", "first"], 2)


@pytest.mark.parametrize(
    "wrong",
    [
        "yesterday",
        "2026-11-22",
        "2026-11-22T06:00:00",
        "1764000000",
        "2026-13-01T00:00:00Z",
        "2026-11-22T06:00:00 02:00",
        "0001-01-01T00:00:00+02:00",
        "9999-12-31T23:59:59-14:00",
        "",
    ],
)
async def test_a_time_that_is_not_of_rfc_3339_is_refused(api: Api, wrong: str) -> None:
    for name in ("since", "until"):
        assert await api.problem("GET", f"/v1/tasks?{name}={quote(wrong)}") == (422, "invalid_request")


@pytest.mark.parametrize("right", ["2026-11-22T06:00:00Z", "2026-11-22t06:00:00.123456z", "0001-01-01T00:00:00Z"])
async def test_times_of_rfc_3339_are_taken(api: Api, right: str) -> None:
    assert await found(api, since=right, until=right) == []


async def test_tasks_are_found_by_words_of_their_objective(api: Api) -> None:
    for objective in ("Write the SALES report", "Report on sales of ÄPFEL", "Count the files"):
        await api.swarm.submit(objective)
    assert await found(api, text="report sales") == ["Report on sales of ÄPFEL", "Write the SALES report"]
    assert await found(api, text="äpfel") == ["Report on sales of ÄPFEL"]
    assert await found(api, text="file COUNT", status="queued") == ["Count the files"]
    assert await found(api, text="report files") == []
    assert await found(api, text="  ", limit="2") == ["Count the files", "Report on sales of ÄPFEL"]
    assert await api.problem("GET", f"/v1/tasks?text={'x' * 201}") == (422, "invalid_request")


async def test_a_search_by_words_finds_no_secret_by_its_beginning(api: Api) -> None:
    await api.swarm.submit(f"log in with {SECRET}")
    assert await found(api, text="log in") == ["log in with [redacted]"]
    assert await found(api, text=SECRET) == await found(api, text=SECRET[:7]) == []


async def test_a_search_looks_at_a_bounded_number_of_tasks_and_goes_on_with_its_cursor(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_pages, "SEARCHED", 5)
    monkeypatch.setattr(task_pages, "READ_AT_ONCE", 2)
    for number in range(12):
        await api.swarm.submit(f"task {number}{' wanted' if number in (0, 6, 7) else ''}")
    before = api.swarm.store.usage.reads
    first = await api.get("/v1/tasks?text=wanted")
    assert [item["objective"] for item in first["items"]] == ["task 7 wanted"] and first["next_cursor"]
    assert api.swarm.store.usage.reads - before <= 5 + 3, "each of three queries may read one more"
    assert await read_all(api, text="wanted") == (["task 7 wanted", "task 6 wanted", "task 0 wanted"], 3)
    assert await read_all(api, text="wanted", limit="1") == (["task 7 wanted", "task 6 wanted", "task 0 wanted"], 4)
    assert await read_all(api, text="nothing") == ([], 3)


async def test_a_document_that_cannot_be_read_is_named_by_a_search(api: Api) -> None:
    await api.swarm.submit("good")
    wrong = {"session_hash": "s1", "assigned_to": "scout", "status": "odd", "updated_at": api.swarm.clock.now()}
    await api.swarm.store.commit([Create("agent_tasks/by-hand", wrong)])
    shown = await api.get("/v1/tasks?text=good")
    assert [item["objective"] for item in shown["items"]] == ["good"] and shown["unreadable"] == ["by-hand"]
