"""Idempotency keys: a repeated request runs once and gets the same answer; another request with its key is refused."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import anyio
import pytest

from fireswarm.api.idempotency import CLAIM_SECONDS, KEEP_SECONDS, MAX_KEPT_BYTES
from fireswarm.contracts.ports import Create
from fireswarm.errors import StoreUnavailable
from fireswarm.storage.documents.paths import REQUESTS
from tests.support.api import Api, open_api
from tests.support.swarm import SwarmRig, open_test_swarm

pytestmark = pytest.mark.anyio

KEY = {"Idempotency-Key": "key-1"}
AGENT = {"name": "x", "role": "scout"}


@pytest.fixture
async def api() -> AsyncGenerator[Api]:
    async with open_test_swarm(session="s1") as swarm, open_api(swarm) as opened:
        yield opened


async def made(api: Api) -> int:
    return len((await api.get("/v1/agents"))["items"])


async def test_repeated_request_is_executed_once_and_replayed(api: Api) -> None:
    first = await api.call("POST", "/v1/agents", AGENT, headers=KEY)
    again = await api.call("POST", "/v1/agents", {"role": "scout", "name": "x"}, headers=KEY)
    assert (first.status_code, first.content) == (again.status_code, again.content)
    assert again.headers["idempotency-replayed"] == "true" and "idempotency-replayed" not in first.headers
    assert {name: first.headers[name] for name in ("location", "etag")} == {
        name: again.headers[name] for name in ("location", "etag")
    }
    assert await made(api) == 1


async def test_concurrent_identical_requests_are_executed_once(api: Api) -> None:
    codes: list[int] = []

    async def send() -> None:
        codes.append((await api.call("POST", "/v1/agents", AGENT, headers=KEY)).status_code)

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(send)
    assert await made(api) == 1 and codes.count(201) >= 1 and set(codes) <= {201, 409}


@pytest.mark.parametrize("other", [("POST", "/v1/agents", AGENT | {"name": "y"}), ("POST", "/v1/tasks", AGENT)])
async def test_different_request_with_the_same_key_is_refused(api: Api, other: tuple[str, str, Any]) -> None:
    await api.post("/v1/agents", AGENT, **KEY)
    assert await api.problem(*other, Idempotency_Key="key-1") == (422, "idempotency_key_reused")


async def test_error_responses_are_replayed_too(api: Api) -> None:
    wrong = AGENT | {"role": "nobody"}
    first = await api.call("POST", "/v1/agents", wrong, headers=KEY)
    again = await api.call("POST", "/v1/agents", wrong, headers=KEY)
    assert first.status_code == again.status_code == 422 and first.content == again.content
    assert again.headers["content-type"] == "application/problem+json"


async def test_key_expires_after_a_day_and_belongs_to_one_session(api: Api) -> None:
    await api.post("/v1/agents", AGENT, **KEY)
    settings = api.swarm.core.settings.model_copy(update={"session": "s2"})
    other = SwarmRig(replace(api.swarm.core, settings=settings), api.swarm.clock, api.swarm.database)
    async with open_api(other) as second:
        await second.post("/v1/agents", AGENT | {"name": "y"}, **KEY)
    await api.swarm.clock.advance(KEEP_SECONDS + 1)
    await api.post("/v1/agents", AGENT | {"name": "z"}, **KEY)
    assert await made(api) == 2


async def test_request_of_a_dead_process_can_be_repeated_after_its_claim_expires(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = api.swarm.store
    commit = store.commit
    broken = False

    async def fails_after_the_claim(writes: Any) -> Any:
        if broken and not writes[0].path.startswith("api_requests"):
            raise BaseExceptionGroup("killed", [KeyboardInterrupt()])
        return await commit(writes)

    monkeypatch.setattr(store, "commit", fails_after_the_claim)
    broken = True
    with pytest.raises(BaseExceptionGroup):
        await api.call("POST", "/v1/agents", AGENT, headers=KEY)
    broken = False
    assert await api.problem("POST", "/v1/agents", AGENT, Idempotency_Key="key-1") == (409, "request_in_progress")
    await api.swarm.clock.advance(CLAIM_SECONDS + 1)
    await api.post("/v1/agents", AGENT, **KEY)
    assert await made(api) == 1


async def test_request_failed_by_the_store_can_be_sent_again(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*given: Any) -> Any:
        raise StoreUnavailable("the store is away")

    with monkeypatch.context() as patched:
        patched.setattr("fireswarm.api.routes.agents.stored_agents.create", away)
        answer = await api.call("POST", "/v1/agents", AGENT, headers=KEY)
    assert answer.status_code == 503 and answer.headers["retry-after"] and answer.json()["retryable"] is True
    await api.post("/v1/agents", AGENT, **KEY)


async def test_unexpected_error_returns_a_problem_without_details(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*given: Any) -> Any:
        raise ZeroDivisionError("details of the inside")

    with monkeypatch.context() as patched:
        patched.setattr("fireswarm.api.routes.agents.stored_agents.create", broken)
        answer = await api.call("POST", "/v1/agents", AGENT, headers=KEY)
    assert answer.status_code == 500 and answer.json()["code"] == "internal" and "inside" not in answer.text
    await api.post("/v1/agents", AGENT, **KEY)


async def test_replay_of_an_answer_too_large_to_store_is_refused(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_KEPT_BYTES > 500_000
    monkeypatch.setattr("fireswarm.api.idempotency.MAX_KEPT_BYTES", 10)
    await api.post("/v1/agents", AGENT, **KEY)
    assert await api.problem("POST", "/v1/agents", AGENT, Idempotency_Key="key-1") == (409, "answer_not_kept")
    assert await made(api) == 1


async def test_too_long_key_is_refused(api: Api) -> None:
    assert await api.problem("POST", "/v1/agents", AGENT, Idempotency_Key="x" * 201) == (422, "invalid_request")


@pytest.mark.parametrize("route_fails", [False, True])
async def test_answer_is_returned_even_when_it_cannot_be_stored(
    api: Api, monkeypatch: pytest.MonkeyPatch, route_fails: bool
) -> None:
    """The store fails after the work and before the answer is stored; the claim then expires."""
    store, real = api.swarm.store, api.swarm.store.commit

    async def commit(writes: Any, **options: Any) -> Any:
        if writes[0].path.startswith(f"{REQUESTS}/") and not isinstance(writes[0], Create):
            raise StoreUnavailable("the store is away")
        return await real(writes, **options)

    async def broken(*_: Any) -> Any:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(store, "commit", commit)
        if route_fails:
            patch.setattr("fireswarm.swarm.submission.stored_agents.create", broken)
        answer = await api.call("POST", "/v1/agents", AGENT, headers=KEY)
    assert answer.status_code == (500 if route_fails else 201)
    assert answer.json()["code" if route_fails else "name"] == ("internal" if route_fails else "x")
    assert await api.problem("POST", "/v1/agents", AGENT, Idempotency_Key="key-1") == (409, "request_in_progress")
    await api.swarm.clock.advance(CLAIM_SECONDS + 1)
    assert (await api.call("POST", "/v1/agents", AGENT, headers=KEY)).status_code == 201
