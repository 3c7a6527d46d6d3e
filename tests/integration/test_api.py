"""The HTTP API as a client sees it, on the embedded store: agents, tasks, runs, mail, memory, status."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from fireswarm.contracts.ports import Create, Merge, Update
from fireswarm.contracts.skills.artifact import Artifact, Signal
from fireswarm.contracts.skills.skill import Fact, Question
from fireswarm.contracts.swarm.envelope import Envelope, TaskRef, Trace
from fireswarm.contracts.swarm.outcome import Failed, Waiting
from fireswarm.contracts.swarm.status import AgentState, AgentStatus, QueueHints
from fireswarm.contracts.swarm.task import StatusReason
from fireswarm.storage.documents.paths import agent_path
from tests.support.api import Api, open_api
from tests.support.swarm import done, open_test_swarm

pytestmark = pytest.mark.anyio

SECRET = "hunter2-hunter2-hunter2"


@pytest.fixture
async def api() -> AsyncGenerator[Api]:
    async with open_test_swarm(session="s1") as swarm, open_api(swarm, secrets=(SECRET,)) as opened:
        yield opened


async def test_capabilities_are_listed_and_shown_with_their_tools(api: Api) -> None:
    listed = await api.get("/v1/capabilities")
    assert listed["total"] == len(listed["items"])
    first = next(item for item in listed["items"] if item["id"] == "current_time")
    assert first["status"] == "available" and first["icon"] == "clock"
    shown = await api.get("/v1/capabilities/web_fetch")
    assert shown["operator_keys"] == ["allow_hosts"] and "body_seconds" in shown["settings"]
    assert shown["tools"][0]["parameters"]["required"] == ["url"]
    assert (await api.get("/v1/capabilities/noop"))["tools"] == []
    assert await api.problem("GET", "/v1/capabilities/nothing") == (404, "not_found")


async def test_agent_can_be_created_changed_listed_and_deleted(api: Api) -> None:
    sent = {"name": "Research Assistant", "role": "scout", "system_prompt": "Be brief.", "capabilities": ["test_math"]}
    made = await api.call("POST", "/v1/agents", sent)
    assert made.status_code == 201 and made.headers["etag"] == '"1"'
    agent = made.json()
    assert agent["capabilities"] == ["test_math"] and agent["status"] == "active"
    assert made.headers["location"] == f"/v1/agents/{agent['id']}"
    path = f"/v1/agents/{agent['id']}"
    uses = [{"id": "web_fetch", "config": {"body_seconds": 60}, "prefix": ""}, "current_time"]
    changed = await api.ok("PATCH", path, {"capabilities": uses})
    assert changed["capabilities"] == uses and changed["version"] == 2 and changed["name"] == "Research Assistant"
    assert await api.get(path) == changed
    assert (await api.get("/v1/agents"))["items"] == [changed]
    await api.ok("PATCH", path, {"system_prompt": "", "capabilities": []})
    emptied = await api.get(path)
    assert emptied["system_prompt"] == "" and emptied["capabilities"] == []
    assert (await api.call("DELETE", path)).status_code == 204
    assert await api.problem("GET", path) == (404, "not_found")


async def test_agent_update_with_an_outdated_etag_is_refused(api: Api) -> None:
    agent = await api.post("/v1/agents", {"name": "one", "role": "scout"})
    path = f"/v1/agents/{agent['id']}"
    await api.ok("PATCH", path, {"name": "two"}, headers={"If-Match": '"1"'})
    assert await api.problem("PATCH", path, {"name": "three"}, if_match='"1"') == (412, "precondition_failed")
    assert await api.problem("DELETE", path, if_match="nonsense") == (412, "precondition_failed")
    assert (await api.get(path))["name"] == "two"


async def test_agent_that_changes_between_the_check_and_its_deletion_stays(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = await api.post("/v1/agents", {"name": "one", "role": "scout"})
    path, commit = f"/v1/agents/{agent['id']}", api.swarm.store.commit

    async def change_first(writes: Any, **more: Any) -> Any:
        monkeypatch.setattr(api.swarm.store, "commit", commit)
        await commit([Update(agent_path(agent["id"]), {"name": "two", "version": 2})])
        return await commit(writes, **more)

    monkeypatch.setattr(api.swarm.store, "commit", change_first)
    assert await api.problem("DELETE", path, if_match='"1"') == (412, "precondition_failed")
    assert (await api.get(path))["name"] == "two"
    assert (await api.call("DELETE", path)).status_code == 204


@pytest.mark.parametrize(
    "wrong",
    [
        {"capabilities": ["nothing"]},
        {"capabilities": ["test_math", "test_math"]},
        {"capabilities": [{"id": "web_fetch", "config": {"body_seconds": -1}}]},
        {"capabilities": [{"id": "web_fetch", "config": {"allow_hosts": ["db"]}}]},
        {"role": "nobody"},
        {"colour": "red"},
    ],
)
async def test_invalid_agent_is_rejected_and_not_stored(api: Api, wrong: dict[str, Any]) -> None:
    status, _ = await api.problem("POST", "/v1/agents", {"name": "x", "role": "scout"} | wrong)
    assert status == 422
    assert (await api.get("/v1/agents"))["items"] == []


@pytest.mark.parametrize("uri", ["file:///etc/passwd", "/etc/passwd", "local:///etc/passwd", "memory://x", "gs://", ""])
async def test_attachments_name_no_files_of_the_machine(uri: str, api: Api) -> None:
    sent = {"role": "scout", "objective": "read it", "attachments": [{"name": "a", "uri": uri}]}
    assert await api.problem("POST", "/v1/tasks", sent) == (422, "invalid_request")
    sent["attachments"] = [{"name": "a", "uri": "gs://bucket/a.csv"}, {"name": "b", "uri": "https://127.0.0.1/b"}]
    assert (await api.call("POST", "/v1/tasks", sent)).status_code == 201


async def test_a_task_for_an_agent_gets_its_role_capabilities_and_prompt(api: Api) -> None:
    given = {"name": "x", "role": "predictor", "system_prompt": "Be brief.", "capabilities": ["test_math"]}
    agent = await api.post("/v1/agents", given)
    sent = {"objective": "add it up", "agent_id": agent["id"], "capabilities": ["current_time"]}
    task = await api.post("/v1/tasks", sent)
    assert task["assigned_to"] == "predictor" and task["for_agent"] == agent["id"]
    assert task["capabilities"] == ["test_math", "current_time"]
    assert (await api.swarm.task(task["task_id"])).instructions == "Be brief."
    plain = await api.post("/v1/tasks", {"objective": "add it up", "role": "predictor"})
    assert plain["task_id"] != task["task_id"]
    assert await api.problem("POST", "/v1/tasks", sent | {"role": "scout"}) == (422, "invalid_input")
    await api.ok("PATCH", f"/v1/agents/{agent['id']}", {"status": "archived"})
    assert await api.problem("POST", "/v1/tasks", sent | {"again": "once more"}) == (422, "invalid_input")


async def test_submitting_the_same_objective_twice_returns_the_same_task(api: Api) -> None:
    sent = {"objective": "count", "role": "scout", "context": {"path": "a"}}
    first = await api.call("POST", "/v1/tasks", sent)
    again = await api.call("POST", "/v1/tasks", sent)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    assert first.headers["location"] == f"/v1/tasks/{first.json()['task_id']}"


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"role": "nobody"}, "invalid_input"),
        ({"skill": "nothing"}, "invalid_input"),
        ({"depends_on": ["nothing"]}, "invalid_input"),
        ({"context": {"n": 2**70}}, "invalid_request"),
        ({"context": {"": 1}}, "invalid_request"),
        ({"context": {"text": "\ud800"}}, "invalid_request"),
        ({"priority": 11}, "invalid_request"),
        ({"objective": "\ud800"}, "invalid_request"),
        ({"capabilities": ["nothing"]}, "invalid_input"),
    ],
)
async def test_invalid_task_is_rejected_and_not_submitted(api: Api, wrong: dict[str, Any], code: str) -> None:
    sent = {"objective": "count", "role": "scout"} | wrong
    assert await api.problem("POST", "/v1/tasks", sent) == (422, code)
    assert (await api.get("/v1/tasks"))["items"] == []


async def test_too_deeply_nested_context_is_refused(api: Api) -> None:
    nested: Any = 1
    for _ in range(30):
        nested = {"in": nested}
    sent = {"objective": "count", "role": "scout", "context": nested}
    assert await api.problem("POST", "/v1/tasks", sent) == (422, "invalid_request")


async def test_canceled_task_can_be_neither_canceled_again_nor_retried(api: Api) -> None:
    task = await api.post("/v1/tasks", {"objective": "count", "role": "scout"})
    path = f"/v1/tasks/{task['task_id']}"
    assert await api.post(f"{path}/cancel", {"reason": "no longer wanted", "tree": True}) == {
        "canceled": [task["task_id"]]
    }
    assert (await api.get(path))["summary"] == "canceled: no longer wanted"
    assert await api.problem("POST", f"{path}/cancel") == (409, "terminal_task")
    assert await api.problem("POST", f"{path}/retry") == (409, "terminal_task")


async def test_retry_queues_a_failed_task_again(api: Api) -> None:
    task = await api.swarm.submit()
    await api.swarm.settle(await api.swarm.claim_one(), Failed("no such file"))
    assert (await api.get(f"/v1/tasks/{task.task_id}"))["status_reason"] == "dead_letter"
    assert (await api.post(f"/v1/tasks/{task.task_id}/retry"))["status"] == "queued"


async def test_answering_the_questions_of_a_task_queues_it_again(api: Api) -> None:
    task = await api.swarm.submit()
    asked = (Question(name="path", description="Which folder?"),)
    await api.swarm.settle(await api.swarm.claim_one(), Waiting(StatusReason.INPUT_REQUIRED, "where?", asked))
    path = f"/v1/tasks/{task.task_id}"
    assert [question["name"] for question in (await api.get(path))["questions"]] == ["path"]
    assert await api.problem("POST", f"{path}/answer", {"answers": {"1-1": 1}}) == (422, "invalid_input")
    answered = await api.post(f"{path}/answer", {"answers": {"1-1": "notes"}})
    assert answered["status"] == "queued" and answered["answers"] == {"path": "notes"}


async def test_paging_shows_each_task_once_while_new_tasks_arrive(api: Api) -> None:
    wanted = {(await api.swarm.submit(f"task {number}")).task_id for number in range(7)}
    page = await api.get("/v1/tasks?limit=3")
    seen = [item["task_id"] for item in page["items"]]
    while page["next_cursor"]:
        await api.swarm.submit(f"meanwhile {len(seen)}")
        page = await api.get(f"/v1/tasks?limit=3&cursor={page['next_cursor']}")
        seen += [item["task_id"] for item in page["items"]]
    assert len(seen) == 7 and set(seen) == wanted


async def test_paging_loses_no_documents_with_equal_timestamps(api: Api) -> None:
    now = api.swarm.clock.now()
    fields = {"type": "fact", "session_hash": "s1", "bucket": "b", "value": 1, "created_at": now}
    facts = [Create(f"mcp_memory/fact-{number}", fields | {"key": f"k{number}"}) for number in range(5)]
    await api.swarm.store.commit(facts)
    page = await api.get("/v1/memory/facts?limit=2")
    seen = [item["key"] for item in page["items"]]
    while page["next_cursor"]:
        page = await api.get(f"/v1/memory/facts?limit=2&cursor={page['next_cursor']}")
        seen += [item["key"] for item in page["items"]]
    assert sorted(seen) == [f"k{number}" for number in range(5)]


async def test_cursor_that_is_malformed_or_from_another_list_is_refused(api: Api) -> None:
    await api.swarm.submit("one")
    await api.swarm.submit("two")
    cursor = (await api.get("/v1/tasks?limit=1"))["next_cursor"]
    assert await api.problem("GET", f"/v1/runs?cursor={cursor}") == (422, "invalid_input")
    odd = [["tomorrow"], "agent_tasks/t"], [[None], "agent_tasks/t"], [2**70, "agent_tasks/t"], ["", "agent_tasks/a/b"]
    spelled = [base64.urlsafe_b64encode(json.dumps(each).encode()).decode() for each in odd]
    for broken in ("x", "bnVsbA", "WzEsMl0", *spelled):
        assert await api.problem("GET", f"/v1/tasks?cursor={broken}") == (422, "invalid_input")


async def test_unreadable_task_document_does_not_hide_the_others(api: Api) -> None:
    good = await api.swarm.submit()
    wrong = {"session_hash": "s1", "assigned_to": "scout", "status": "odd", "updated_at": api.swarm.clock.now()}
    await api.swarm.store.commit([Create("agent_tasks/by-hand", wrong)])
    listed = await api.get("/v1/tasks")
    assert [item["task_id"] for item in listed["items"]] == [good.task_id]
    assert listed["unreadable"] == ["by-hand"]
    await api.swarm.store.commit([Create("agent_tasks/typed", wrong | {"updated_at": "yesterday"})])
    first = await api.get("/v1/tasks?limit=1")
    assert first["unreadable"] == ["typed"]
    rest = await api.get(f"/v1/tasks?limit=5&cursor={first['next_cursor']}")
    assert [item["task_id"] for item in rest["items"]] == [good.task_id] and rest["unreadable"] == ["by-hand"]


async def test_runs_are_listed_and_shown_with_their_events(api: Api) -> None:
    task = await api.swarm.submit()
    held = await api.swarm.claim_one()
    journal = await api.swarm.journal(held)
    for number in range(40):
        journal.note("thought", number=number)
        await journal.flush()
    listed = await api.get(f"/v1/runs?task={task.task_id}&role=scout")
    assert [run["run_id"] for run in listed["items"]] == [held.run_id]
    assert "events" not in listed["items"][0]
    shown = await api.get(f"/v1/runs/{held.run_id}?events=5")
    assert [event["payload"]["number"] for event in shown["events"]] == [35, 36, 37, 38, 39]
    assert shown["events_left_out"] == 35
    assert await api.problem("GET", "/v1/runs/none.1") == (404, "not_found")


async def test_mail_is_listed_and_shown(api: Api) -> None:
    envelope = Envelope(
        envelope_id="m1",
        task=TaskRef(task_id="t1", assigned_to="scout"),
        session_hash="s1",
        artifacts=(Artifact(type="report", name="r.md"),),
        signals=(Signal(name="churn", strength=0.5),),
        notes="for you",
        trace=Trace(chain_id="t1"),
    )
    await api.swarm.core.mailbox.send(envelope, "architect", "scout", sender_role="architect")
    [listed] = (await api.get("/v1/mail?to=scout&status=new"))["items"]
    assert listed == await api.get("/v1/mail/m1")
    assert listed["payload"]["notes"] == "for you" and listed["payload"]["artifacts"][0]["name"] == "r.md"


async def test_facts_are_listed_and_recalled(api: Api) -> None:
    facts = (Fact(bucket="inventory", key="files", value=12), Fact(bucket="other", key="weather", value="fine"))
    await api.swarm.store.commit(await api.swarm.core.memory.learn("s1", "t1", facts))
    listed = await api.get("/v1/memory/facts?bucket=inventory")
    assert [(fact["key"], fact["value"]) for fact in listed["items"]] == [("files", 12)]
    recalled = await api.get("/v1/memory/recall?query=how many files are there?")
    assert [fact["key"] for fact in recalled["items"]] == ["files"] and "files" in recalled["keywords"]


async def test_heartbeats_and_status_report_the_state_of_the_fleet(api: Api) -> None:
    beat = AgentStatus(
        agent_id="scout-1",
        role="scout",
        session_hash="other",
        status=AgentState.WORKING,
        queue_hints=QueueHints(running=1, capacity=4, holding=("a-task-of-another-session",)),
        created_at=api.swarm.clock.now(),
    )
    await api.swarm.core.heartbeats.beat(beat)
    await api.swarm.submit("theirs", session="other")
    await api.swarm.claim_one("scout-1")
    listed = await api.call("GET", "/v1/memory/agents")
    assert "a-task-of-another-session" not in listed.text
    assert listed.json()["items"][0]["state"] == "working"
    await api.swarm.submit()
    status = await api.get("/v1/status")
    assert status["session"] == "s1" and status["tasks"]["queued"] == 1 and status["agents"] == {"working": 1}
    await api.swarm.clock.advance(100)
    assert (await api.get("/v1/status"))["agents"] == {"gone": 1}


async def test_documents_of_another_session_are_neither_shown_nor_changed(api: Api) -> None:
    task = await api.swarm.submit("secret work", session="other")
    held = await api.swarm.claim_one()
    journal = await api.swarm.journal(held)
    journal.note("thought")
    await journal.flush()
    agent = {"agent_id": "a1", "session_hash": "other", "name": "x", "role": "scout", "version": 1}
    await api.swarm.store.commit([Merge("agents/a1", agent)])
    for path in (f"/v1/tasks/{task.task_id}", f"/v1/runs/{held.run_id}", "/v1/agents/a1"):
        assert await api.problem("GET", path) == (404, "not_found")
    for action in ("cancel", "retry"):
        assert await api.problem("POST", f"/v1/tasks/{task.task_id}/{action}") == (404, "not_found")
    assert await api.problem("GET", f"/v1/events?task={task.task_id}") == (404, "not_found")
    after = {"objective": "spy", "role": "scout", "depends_on": [task.task_id]}
    assert await api.problem("POST", "/v1/tasks", after) == (422, "invalid_input")
    for path in ("/v1/tasks", "/v1/runs", "/v1/agents"):
        assert (await api.get(path))["items"] == []


async def test_secrets_are_redacted_from_responses(api: Api) -> None:
    task = await api.swarm.submit(f"log in with {SECRET}")
    answer = await api.call("GET", f"/v1/tasks/{task.task_id}")
    assert SECRET not in answer.text and "[redacted]" in answer.text
    refused = await api.call("POST", "/v1/tasks", {"objective": "x", "role": f"no {SECRET}"})
    assert SECRET not in refused.text
    unknown = await api.call("POST", "/v1/tasks", {"objective": "x", "skill": SECRET, "role": "scout"})
    assert unknown.status_code == 422 and SECRET not in unknown.text


async def test_unknown_paths_wrong_methods_and_bad_bodies_return_problems(api: Api) -> None:
    assert await api.problem("GET", "/v1/nothing") == (404, "not_found")
    assert await api.problem("PUT", "/v1/tasks", {}) == (405, "method_not_allowed")
    assert (await api.call("PUT", "/v1/tasks")).headers["allow"] == "GET, HEAD, POST"
    assert (await api.call("PUT", "/v1/agents/a1")).headers["allow"] == "DELETE, GET, HEAD, PATCH"
    answer = await api.client.post("/v1/tasks", content=b"{", headers={"content-type": "application/json"})
    assert answer.status_code == 422 and answer.json()["code"] == "invalid_request"
    answer = await api.client.post("/v1/tasks", content=b"\xff\xfe", headers={"content-type": "application/json"})
    assert answer.status_code == 422


async def test_a_finished_task_shows_its_result(api: Api) -> None:
    task = await api.swarm.submit()
    artifacts = (Artifact(type="report", value={"nan": float("nan")}),)
    await api.swarm.settle(await api.swarm.claim_one(), done("all counted", artifacts=artifacts))
    shown = await api.get(f"/v1/tasks/{task.task_id}")
    assert shown["status"] == "done" and shown["result"]["summary"] == "all counted"
    assert shown["result"]["artifacts"][0]["value"] == {"nan": None}


async def test_task_explains_why_it_is_waiting(api: Api) -> None:
    queued = await api.ok("POST", "/v1/tasks", {"objective": "look", "role": "scout"})
    later = {"objective": "then", "role": "scout", "depends_on": [queued["task_id"]]}
    waiting = await api.ok("POST", "/v1/tasks", later)
    reasons = [(await api.ok("GET", f"/v1/tasks/{task['task_id']}"))["why"] for task in (queued, waiting)]
    assert reasons[0].startswith("It waits for an agent of the role scout")
    assert reasons[1] == f"It waits for 1 task: {queued['task_id'][:8]}."
