"""``/v1/schedules``: set, read, change and delete schedules of the session, with entity tags."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from fireswarm.contracts.ports import Update
from fireswarm.storage.documents.paths import schedule_path
from tests.support.api import Api, open_api
from tests.support.schedules import MINUTE, by_hand, edit, occasions, reading
from tests.support.swarm import open_test_swarm

pytestmark = pytest.mark.anyio

PATH = "/v1/schedules/report"
BODY: dict[str, Any] = {
    "cron": "*/5 * * * *",
    "timezone": "Europe/Berlin",
    "task": {"objective": "write it", "role": "scout", "skill": "noop", "context": {"path": "/srv"}, "priority": 8},
}


@pytest.fixture
async def api() -> AsyncGenerator[Api]:
    async with open_test_swarm(session="s1") as swarm, open_api(swarm) as opened:
        yield opened


async def tag(api: Api) -> str:
    return (await api.call("GET", PATH)).headers["etag"]


async def test_a_schedule_is_set_read_fired_and_deleted(api: Api) -> None:
    made = await api.call("PUT", PATH, BODY)
    assert made.status_code == 201, made.text
    assert made.headers["location"] == PATH
    assert made.json()["words"] == "Every fifth minute of every hour"
    assert made.json()["next_at"] == "2026-01-01T00:05:00Z"
    assert made.json()["task"] == BODY["task"]
    api.swarm.clock.stand_still(5 * MINUTE)
    await (await reading(api.swarm)).fire_once()
    assert await occasions(api.swarm) == ["2026-01-01T00:05"]
    shown = await api.get(PATH)
    task = await api.get(f"/v1/tasks/{shown['last_task_id']}")
    assert (task["created_by"], task["priority"], task["context"]) == ("api", 8, {"path": "/srv"})
    again = await api.call("PUT", PATH, BODY | {"task": shown["task"] | {"priority": 3}})
    assert again.status_code == 200
    assert again.json() | {"task": {}, "updated_at": ""} == shown | {"task": {}, "updated_at": ""}
    assert await api.get("/v1/schedules") == {"items": [again.json()], "total": 1, "unreadable": []}
    assert (await api.call("DELETE", PATH)).status_code == 204
    for method, body in (("GET", None), ("DELETE", None)):
        assert await api.problem(method, PATH, body) == (404, "not_found")


async def test_a_change_of_any_field_changes_the_tag(api: Api) -> None:
    made = await api.call("PUT", PATH, BODY)
    first = await tag(api)
    assert first == made.headers["etag"]
    assert (await api.call("GET", PATH, headers={"If-None-Match": first})).status_code == 304
    api.swarm.clock.stand_still(5 * MINUTE)
    await (await reading(api.swarm)).fire_once()
    assert await tag(api) != first
    assert await api.problem("PUT", PATH, BODY, if_match=first) == (412, "precondition_failed")
    assert await api.problem("DELETE", PATH, if_match=first) == (412, "precondition_failed")
    assert await api.problem("PUT", PATH, BODY, if_match=f"W/{await tag(api)}") == (412, "precondition_failed")
    second = await tag(api)
    changed = await api.call("PUT", PATH, BODY | {"paused": True}, headers={"If-Match": f"{first}, {second}"})
    assert (changed.status_code, changed.json()["paused"], changed.json()["next_at"]) == (200, True, None)
    assert await api.problem("PUT", "/v1/schedules/other", BODY, if_match="*") == (412, "precondition_failed")
    await api.ok("DELETE", PATH, headers={"If-Match": await tag(api)})


@pytest.mark.parametrize(("method", "body"), [("PUT", BODY), ("DELETE", None)])
async def test_an_edit_between_the_check_and_the_write_is_not_lost(
    method: str, body: dict[str, Any] | None, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    await api.ok("PUT", PATH, BODY)
    first, commit = await tag(api), api.swarm.store.commit

    async def edit_first(writes: Any, **more: Any) -> Any:
        monkeypatch.setattr(api.swarm.store, "commit", commit)
        await commit([Update(schedule_path("report"), {"paused": True})])
        return await commit(writes, **more)

    monkeypatch.setattr(api.swarm.store, "commit", edit_first)
    assert await api.problem(method, PATH, body, if_match=first) == (412, "precondition_failed")
    assert (await api.get(PATH))["paused"] is True


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"cron": "soon"}, "has to be minute, hour"),
        ({"timezone": "Berlin"}, "no time zone 'Berlin'"),
        ({"overlap": "maybe"}, "overlap"),
        ({"every": "day"}, "every"),
        ({"task": {"objective": "x", "role": "nobody"}}, "there is no role 'nobody'"),
        ({"task": {"objective": "x", "role": "scout", "skill": "no-such"}}, "no skill 'no-such'"),
        ({"task": {"objective": "x", "deadline": "2027-01-01T00:00:00Z"}}, "deadline"),
        ({"task": {"objective": ""}}, "objective"),
        ({"task": {"objective": "x", "attachments": [{"name": "p", "uri": "file:///etc/passwd"}]}}, "uri"),
    ],
)
async def test_a_wrong_schedule_is_refused(api: Api, wrong: dict[str, Any], told: str) -> None:
    answer = await api.call("PUT", PATH, BODY | wrong)
    assert answer.status_code == 422
    assert told in answer.text
    assert (await api.get("/v1/schedules"))["total"] == 0


async def test_schedules_of_other_sessions_are_not_found(api: Api) -> None:
    await by_hand(api.swarm, "report", cron="0 6 * * *", task={"objective": "x"}, session_hash="s2")
    assert await api.problem("GET", PATH) == (404, "not_found")
    assert await api.problem("DELETE", PATH) == (404, "not_found")
    assert await api.problem("PUT", PATH, BODY) == (422, "invalid_input")
    assert (await api.get("/v1/schedules"))["items"] == []
    assert await api.problem("GET", "/v1/schedules/..%2fx") == (404, "not_found")


async def test_a_malformed_schedule_is_named_and_can_be_replaced(api: Api) -> None:
    await by_hand(api.swarm, "report", cron="at noon", task={"objective": "x"}, session_hash="s1")
    assert await api.get("/v1/schedules") == {"items": [], "total": 0, "unreadable": ["report"]}
    assert await api.problem("GET", PATH) == (422, "invalid_input")
    assert await api.problem("PUT", PATH, BODY, if_match="*") == (412, "precondition_failed")
    await api.ok("PUT", PATH, BODY)
    assert (await api.get(PATH))["note"] == ""
    await edit(api.swarm, cron="at noon")
    assert (await api.call("DELETE", PATH)).status_code == 204
