"""Reads of the API: entity tags, 304 responses and HEAD on all of them, and If-Match on agents."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from dataclasses import replace

import anyio
import anyio.lowlevel
import httpx2
import pytest

from fireswarm.api.application import make_application
from fireswarm.contracts.skills.artifact import Artifact
from fireswarm.contracts.skills.skill import Fact
from fireswarm.contracts.swarm.envelope import Envelope, TaskRef, Trace
from tests.support.api import HEADERS, Api, open_api, serving, streaming
from tests.support.patience import PATIENCE_SECONDS
from tests.support.swarm import SwarmRig, done, open_test_swarm

pytestmark = pytest.mark.anyio

STRONG = re.compile(r'"[0-9a-f]{32}"')
PATHS = {
    "/v1/capabilities": "/v1/capabilities",
    "/v1/capabilities/{capability_id}": "/v1/capabilities/web_fetch",
    "/v1/agents": "/v1/agents",
    "/v1/agents/{agent_id}": "/v1/agents/{agent}",
    "/v1/tasks": "/v1/tasks?limit=5",
    "/v1/tasks/{task_id}": "/v1/tasks/{task}",
    "/v1/tasks/{task_id}/objective": "/v1/tasks/{task}/objective",
    "/v1/tasks/{task_id}/artifacts/{name}": "/v1/tasks/{task}/artifacts/report.md",
    "/v1/runs": "/v1/runs",
    "/v1/runs/{run_id}": "/v1/runs/{task}.1",
    "/v1/mail": "/v1/mail",
    "/v1/mail/{message_id}": "/v1/mail/m1",
    "/v1/memory/facts": "/v1/memory/facts",
    "/v1/memory/facts/{fact_id}/history": "/v1/memory/facts/{fact}/history",
    "/v1/memory/recall": "/v1/memory/recall?query=files",
    "/v1/memory/agents": "/v1/memory/agents",
    "/v1/status": "/v1/status",
    "/v1/schedules": "/v1/schedules",
    "/v1/schedules/{name}": "/v1/schedules/report",
}
"""An address of each path of the API that is read."""


@pytest.fixture
async def api() -> AsyncGenerator[Api]:
    async with open_test_swarm(session="s1") as swarm, open_api(swarm) as opened:
        yield opened


async def fill(api: Api) -> dict[str, str]:
    """Store one of each thing that is read; return their ids."""
    agent = await api.post("/v1/agents", {"name": "x", "role": "scout"})
    task = await api.swarm.submit()
    held = await api.swarm.claim_one()
    journal = await api.swarm.journal(held)
    journal.note("looked")
    await journal.flush()
    uri = await api.swarm.core.blobs.put(f"s1/{task.task_id}/report.md", b"# Report\n")
    await api.swarm.settle(held, done(artifacts=(Artifact(type="report", name="report.md", uri=uri),)))
    envelope = Envelope(
        envelope_id="m1",
        task=TaskRef(task_id="t1", assigned_to="scout"),
        session_hash="s1",
        trace=Trace(chain_id="t1"),
    )
    await api.swarm.core.mailbox.send(envelope, "architect", "scout", sender_role="architect")
    facts = (Fact(bucket="inventory", key="files", value=12),)
    await api.swarm.store.commit(await api.swarm.core.memory.learn("s1", "t1", facts))
    work = {"objective": "x", "role": "scout"}
    await api.ok("PUT", "/v1/schedules/report", {"cron": "0 6 * * *", "task": work})
    [fact] = (await api.get("/v1/memory/facts"))["items"]
    return {"agent": agent["id"], "task": task.task_id, "fact": fact["fact_id"]}


async def read_body_of_head(api: Api, path: str) -> str:
    """Return what the application sends after the head of its response: clients and servers drop it."""
    async with streaming(api, path, method="HEAD") as stream:
        with anyio.fail_after(PATIENCE_SECONDS):
            while not stream.ended:
                await anyio.lowlevel.checkpoint()
    return stream.text


def reads(api: Api) -> list[str]:
    """Return the paths of the API's document that can be read, without streams of events."""
    document = make_application(api.service).openapi()
    return [path for path, operations in document["paths"].items() if "get" in operations and path != "/v1/events"]


async def test_every_read_has_a_strong_tag_answers_304_for_it_and_has_a_head(api: Api) -> None:
    ids = await fill(api)
    assert set(PATHS) == set(reads(api))
    for path in [*(address.format(**ids) for address in PATHS.values()), "/openapi.json", "/docs"]:
        whole = await api.call("GET", path)
        head = await api.call("HEAD", path)
        tag = whole.headers["etag"]
        assert whole.status_code == head.status_code == 200 and whole.content, path
        assert STRONG.fullmatch(tag) or path.startswith("/v1/agents/"), path
        assert whole.headers["cache-control"] == "private, no-cache" and whole.headers["vary"] == "Authorization"
        assert await read_body_of_head(api, path) == "", path
        if path != "/v1/status":  # it names the time and counts reads, so no two are alike
            assert {**head.headers} == {**whole.headers}, path
            same = await api.call("GET", path, headers={"If-None-Match": f'"other", W/{tag}'})
            assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", tag), path
            assert "content-type" not in same.headers and "content-length" not in same.headers
            assert (same.headers["cache-control"], same.headers["vary"]) == ("private, no-cache", "Authorization")
        assert (await api.call("HEAD", path, headers={"If-None-Match": "*"})).status_code == 304
        other = await api.call("GET", path, headers={"If-None-Match": '"other", nonsense'})
        assert other.status_code == 200 and other.content


async def test_a_tag_changes_with_the_content_and_lists_change_with_their_items(api: Api) -> None:
    task = await api.swarm.submit()
    paths = ("/v1/tasks", f"/v1/tasks/{task.task_id}", f"/v1/tasks/{task.task_id}/objective")
    tags = [(await api.call("GET", path)).headers["etag"] for path in paths]
    await api.swarm.claim_one()
    for path, tag in zip(paths, tags, strict=True):
        changed = await api.call("GET", path, headers={"If-None-Match": tag})
        assert changed.status_code == 200 and changed.headers["etag"] != tag
    running = [(await api.call("GET", path)).headers["etag"] for path in paths]
    await api.swarm.clock.advance(3)
    assert [(await api.call("GET", path)).headers["etag"] for path in paths] == running


async def test_a_tag_is_of_the_redacted_content(api: Api) -> None:
    task = await api.swarm.submit("log in with hunter2-hunter2")
    path = f"/v1/tasks/{task.task_id}"
    async with open_api(api.swarm, secrets=("hunter2-hunter2",)) as other:
        hidden = await other.call("GET", path)
        shown = await api.call("GET", path, headers={"If-None-Match": hidden.headers["etag"]})
    assert "hunter2" not in hidden.text and "hunter2" in shown.text
    assert hidden.headers["etag"] != shown.headers["etag"]


async def test_an_artifact_has_the_tag_of_its_bytes_and_of_a_part_too(api: Api) -> None:
    ids = await fill(api)
    path = f"/v1/tasks/{ids['task']}/artifacts/report.md"
    whole = await api.call("GET", path)
    tag = whole.headers["etag"]
    part = await api.call("GET", path, headers={"Range": "bytes=2-7", "If-Range": tag})
    assert (part.status_code, part.content, part.headers["etag"]) == (206, b"Report", tag)
    assert (await api.call("GET", path, headers={"Range": "bytes=2-7", "If-None-Match": tag})).status_code == 304
    await api.swarm.core.blobs.put(f"s1/{ids['task']}/report.md", b"# Report!\n")
    changed = await api.call("GET", path, headers={"If-None-Match": tag})
    assert changed.status_code == 200 and changed.text == "# Report!\n"


async def test_errors_and_refusals_have_no_tag_and_an_absent_thing_no_304(api: Api) -> None:
    absent = await api.call("GET", "/v1/tasks/none", headers={"If-None-Match": "*"})
    head = await api.call("HEAD", "/v1/tasks/none")
    assert absent.status_code == head.status_code == 404 and head.content == b""
    assert head.headers["content-type"] == "application/problem+json"
    assert "etag" not in absent.headers and absent.headers["cache-control"] == "no-store"
    assert (await api.call("HEAD", "/v1/tasks?colour=red")).status_code == 422
    assert (await api.call("HEAD", "/v1/tasks/none/cancel")).status_code == 405


async def test_streams_and_probes_have_neither_head_nor_tag(api: Api) -> None:
    assert (await api.call("HEAD", "/v1/events")).status_code == 405
    for path in ("/healthz", "/readyz", "/metrics"):
        whole = await api.call("GET", path, headers={"If-None-Match": "*"})
        assert whole.status_code == 200 and "etag" not in whole.headers
        assert (await api.call("HEAD", path)).status_code == 405


async def test_head_and_304_end_at_their_head_on_a_real_connection() -> None:
    async with (
        open_test_swarm(session="s1") as swarm,
        serving(swarm) as port,
        httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=HEADERS, timeout=PATIENCE_SECONDS) as client,
    ):
        whole = await client.get("/v1/tasks")
        head = await client.head("/v1/tasks")
        same = await client.get("/v1/tasks", headers={"If-None-Match": whole.headers["etag"]})
        assert [head.content, same.content] == [b"", b""] and same.status_code == 304
        assert head.headers["content-length"] == str(len(whole.content))
        assert (await client.get("/v1/tasks")).json() == whole.json()  # on the same connection


async def test_if_match_takes_several_versions_and_any_but_no_weak_one(api: Api) -> None:
    agent = await api.post("/v1/agents", {"name": "one", "role": "scout"})
    path = f"/v1/agents/{agent['id']}"
    named = ('W/"1"', '"2", "3"', "1", "", '"01"', f'"{10**9}9"', '"1', '*, "1"')
    for wrong in named:
        status, code = await api.problem("PATCH", path, {"name": "two"}, if_match=wrong)
        assert (status, code) == (412, "precondition_failed"), wrong
    for right in ('"7", "1"', 'W/"9","2",', "*"):
        await api.ok("PATCH", path, {"name": "two"}, headers={"If-Match": right})
    assert (await api.get(path))["version"] == 4
    assert await api.problem("PATCH", "/v1/agents/none", {"name": "x"}, if_match="*") == (404, "not_found")
    assert await api.problem("DELETE", path, if_match='W/"4"') == (412, "precondition_failed")
    assert (await api.call("DELETE", path, headers={"If-Match": '"3", "4"'})).status_code == 204


async def test_objective_lists_its_tasks_and_no_foreign_ones(api: Api) -> None:
    task = await api.swarm.submit("mine")
    foreign = await api.swarm.submit("theirs", session="other")
    assert await api.problem("GET", f"/v1/tasks/{foreign.task_id}/objective") == (404, "not_found")
    listed = await api.get(f"/v1/tasks/{task.task_id}/objective")
    assert [item["task_id"] for item in listed["items"]] == [task.task_id] and listed["total"] == 1


async def test_history_of_a_fact_shows_its_values_newest_first_and_none_of_another_session(api: Api) -> None:
    for session, value in (("s1", 12), ("s1", 13), ("other", 99)):
        learned = await api.swarm.core.memory.learn(session, "t1", (Fact(bucket="b", key="files", value=value),))
        await api.swarm.store.commit(learned)
    [fact] = (await api.get("/v1/memory/facts"))["items"]
    shown = await api.get(f"/v1/memory/facts/{fact['fact_id']}/history")
    assert [item["value"] for item in shown["items"]] == [13, 12] and shown["total"] == 2
    settings = api.swarm.core.settings.model_copy(update={"session": "other"})
    other = SwarmRig(replace(api.swarm.core, settings=settings), api.swarm.clock, api.swarm.database)
    async with open_api(other) as theirs:
        path = f"/v1/memory/facts/{fact['fact_id']}/history"
        assert await theirs.problem("GET", path) == (404, "not_found")
