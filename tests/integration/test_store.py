"""The store adapter: indexed queries, kinds of conflicts, listeners, usage counts, vendor errors and redaction."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime

import anyio
import pytest
from google.api_core import exceptions as google

from fireswarm.contracts.ports import DELETE_FIELD, SERVER_TIME, Create, Delete, Merge, Query, Update, Usage
from fireswarm.errors import Conflict, FireswarmError, IndexMissing, StoreFull, StoreRejected, StoreUnavailable
from fireswarm.redaction import Redactor
from fireswarm.settings import Settings
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.indexes import VECTOR_DIMENSIONS
from fireswarm.storage.firestore.errors import translate
from fireswarm.storage.firestore.store import COMMIT_ATTEMPTS, FirestoreStore
from fireswarm.swarm.opening.open_parts import open_parts
from tests.support.patience import PATIENCE_SECONDS
from tests.support.swarm import SwarmRig
from tests.support.unreliable import time_flows, unreliable

pytestmark = pytest.mark.anyio
NOW = datetime(2026, 1, 1, tzinfo=UTC)

EVERY_QUERY: dict[str, Query] = {
    "orders with ids": queries.orders(None, ["order-scout", "order-memory"]),
    "created_by": queries.created_by("a2a", "scout", "s1", "queued", 5),
    "failed_runs": queries.failed_runs(NOW, NOW),
    "page of failed runs": queries.page(
        "agent_runs", "started_at", 5, None, (NOW, NOW), status=["error", "timeout"], role="scout", agent_id="scout-1"
    ),
    "needing_person": queries.needing_person("scout", ["dead_letter", "input_required"], 5),
    "ended_since": queries.ended_since("scout", datetime(2026, 1, 1, tzinfo=UTC), 5),
    "new_notices": queries.new_notices("scout", ["pager", "team"], 5),
    "failed_notices": queries.failed_notices(),
    "schedules_in": queries.schedules_in("s1", 5),
    "schedules_of": queries.schedules_of("scout"),
    "claimable": queries.claimable("scout", 5),
    "claimable_from": queries.claimable_from("scout", 5, "8", 5),
    "claimable_before": queries.claimable_before("scout", 5, "8", 5),
    "claimable of a session": queries.claimable("scout", 5, ["s1"]),
    "claimable of sessions": queries.claimable("scout", 5, ["s1", "s2"]),
    "claimable_from of sessions": queries.claimable_from("scout", 5, "8", 5, ["s1", "s2"]),
    "claimable_before of a session": queries.claimable_before("scout", 5, "8", 5, ["s1"]),
    "queued_tasks": queries.queued_tasks("scout", 1),
    "queued_tasks of a session": queries.queued_tasks("scout", 1, ["s1"]),
    "oldest_queued": queries.oldest_queued("scout"),
    "oldest_queued of a session": queries.oldest_queued("scout", ["s1"]),
    "queued_before": queries.queued_before("scout", NOW, 5),
    "queued_before of a session": queries.queued_before("scout", NOW, 5, ["s1"]),
    "due": queries.due("scout", NOW, 5),
    "next_due": queries.next_due("scout"),
    "ended_by_hand": queries.ended_by_hand("scout"),
    "heartbeats": queries.heartbeats(5),
    "heartbeats of a role": queries.heartbeats(5, role="scout"),
    "heartbeats since a time": queries.heartbeats(5, since=NOW),
    "awaited_by": queries.awaited_by("t1"),
    "awaited_by done": queries.awaited_by("t1", status="done"),
    "claimable (counted)": queries.claimable("scout"),
    "queued_slice": queries.queued_slice("scout", "4", "8", 5),
    "queued_slice (first)": queries.queued_slice("scout", "", "8", 5),
    "idle_agents": queries.idle_agents("scout", NOW),
    "queued_after": queries.queued_after("scout", "b", 5),
    "with_status": queries.with_status("blocked", 5),
    "in_progress": queries.in_progress("scout"),
    "with_lease": queries.with_lease("scout"),
    "expired_leases": queries.expired_leases("scout", NOW, 5),
    "inbox": queries.inbox("scout-1"),
    "new_mail": queries.new_mail(5),
    "odd_mail": queries.odd_mail(5),
    "answers": queries.answers("scout"),
    "work_messages": queries.work_messages("scout"),
    "orders": queries.orders(5),
    "known_facts": queries.known_facts("session_hash", "s1", 5),
    "new_facts": queries.new_facts("session_hash", "s1", NOW, 5),
    "new_facts of a project": queries.new_facts("project", "p1", NOW, 5),
    "nearest_facts": queries.nearest_facts("session_hash", "s1", "m", (1.0,) * VECTOR_DIMENSIONS, 5),
    "nearest_facts of a project": queries.nearest_facts("project", "p", "m", (1.0,) * VECTOR_DIMENSIONS, 5),
    "fact_versions": queries.fact_versions("mcp_memory/fact-1"),
    "one_task": queries.one_task("t1"),
    "chain": queries.chain("c1"),
    "journal": queries.journal("agent_runs/r1"),
    "runs_of": queries.runs_of("c1"),
    "thread_of": queries.thread_of("t1"),
    "by_id": queries.by_id("agent_tasks", 25, "t1"),
    "continuing": queries.continuing("t1"),
    "spend of a session": queries.spend(session_hash="s1"),
    "spend of a day": queries.spend(day="2026-11-22"),
    "session_files": queries.session_files("s1", "/a/", "/a0", 5),
    "pocket": queries.pocket("agent_contexts/c1"),
    "ended_contexts": queries.ended_contexts(NOW, 5),
    "dead_letters": queries.dead_letters(5),
    "unknown_statuses": queries.unknown_statuses(5),
    "by_key": queries.by_key("schedule/a/0", "schedule/a/2026-01-01T00:00:00+00:00", 5),
    "with_status counted": queries.with_status("done"),
    "blocked_by": queries.blocked_by("dead_letter"),
    "changed_between": queries.changed_between("done", NOW, NOW),
    "newest tasks": queries.newest(
        "agent_tasks", "updated_at", 5, status="done", assigned_to="scout", session_hash="s1"
    ),
    "newest runs": queries.newest("agent_runs", "started_at", 5, status="error", role="scout", session_hash="s1"),
    "newest runs of a task": queries.newest("agent_runs", "started_at", 5, task_id="t1"),
    "newest mail": queries.newest("agent_mailbox", "created_at", 5, to_agent_id="a", status="new", session_hash="s1"),
    "page of tasks": queries.page(
        "agent_tasks", "updated_at", 5, (NOW, "agent_tasks/t1"), status="done", assigned_to="scout", session_hash="s1"
    ),
    "page of tasks in a time": queries.page(
        "agent_tasks",
        "updated_at",
        5,
        (NOW, "agent_tasks/t1"),
        (NOW, NOW),
        status="blocked",
        status_reason="dead_letter",
        assigned_to="scout",
        session_hash="s1",
    ),
    "page of runs": queries.page("agent_runs", "started_at", 5, None, status="error", role="scout", session_hash="s1"),
    "page of mail": queries.page(
        "agent_mailbox", "created_at", 5, None, to_agent_id="a", status="new", session_hash="s1", task_id="t1"
    ),
    "page of memory": queries.page("mcp_memory", "created_at", 5, None, type="fact", bucket="b", session_hash="s1"),
    "page of agents": queries.page("agents", "created_at", 5, None, status="active", session_hash="s1"),
    "tasks_in": queries.tasks_in("s1", "queued"),
    "newest memory": queries.newest("mcp_memory", "created_at", 5, type="fact", bucket="b", session_hash="s1"),
}


@pytest.mark.parametrize("name", EVERY_QUERY)
async def test_every_query_is_covered_by_the_deployed_indexes(swarm: SwarmRig, name: str) -> None:
    assert await swarm.store.query(EVERY_QUERY[name]) == []


async def test_every_query_function_is_tested_for_its_index() -> None:
    made = {name for name, value in vars(queries).items() if inspect.isfunction(value) and name[0] != "_"}
    assert {name.split()[0] for name in EVERY_QUERY} == made


async def test_a_query_without_its_index_is_refused(swarm: SwarmRig) -> None:
    query = Query("agent_tasks", where=(("skill", "==", "x"),), order_by=(("priority", "desc"),))
    with pytest.raises(IndexMissing, match="agent_tasks"):
        await swarm.store.query(query)


async def test_conflicts_report_whether_the_document_exists(swarm: SwarmRig) -> None:
    store = swarm.store
    first = await store.commit([Create("c/a", {"n": 1})])
    with pytest.raises(Conflict) as twice:
        await store.commit([Create("c/a", {"n": 2})])
    assert (twice.value.exists, twice.value.ambiguous) == (True, False)
    await store.commit([Update("c/a", {"n": 2}, first.update_times[0])])
    with pytest.raises(Conflict) as stale:
        await store.commit([Create("c/b", {}), Update("c/a", {"n": 3}, first.update_times[0])])
    assert not stale.value.exists
    assert (await store.get("c/b")).data is None, "half of a refused commit was written"
    with pytest.raises(Conflict):
        await store.commit([Update("c/none", {"n": 1})])


async def test_merge_replaces_given_fields_and_keeps_the_others(swarm: SwarmRig) -> None:
    await swarm.store.commit([Create("c/a", {"keep": 1, "map": {"old": 1}, "gone": 1})])
    await swarm.store.commit([Merge("c/a", {"map": {"new": 1}, "gone": DELETE_FIELD, "at": SERVER_TIME})])
    data = (await swarm.store.get("c/a")).data
    assert data is not None
    assert {key: data[key] for key in ("keep", "map")} == {"keep": 1, "map": {"new": 1}}
    assert set(data) == {"keep", "map", "at"}


async def test_document_is_deleted_in_the_version_that_was_read_or_not_at_all(swarm: SwarmRig) -> None:
    store = swarm.store
    await store.commit([Create("c/a", {"n": 1})])
    read = (await store.get("c/a")).update_time
    await store.commit([Update("c/a", {"n": 2})])
    with pytest.raises(Conflict):
        await store.commit([Delete("c/a", read)])
    await store.commit([Delete("c/a", (await store.get("c/a")).update_time)])
    assert (await store.get("c/a")).data is None
    with pytest.raises(Conflict):
        await store.commit([Delete("c/a", read)])


async def test_operations_are_counted_as_firestore_bills_them(swarm: SwarmRig) -> None:
    store, usage = swarm.store, swarm.store.usage
    await store.commit([Create("c/a", {"n": 1}), Create("c/b", {"n": 2}), Delete("c/none")])
    await store.get_many(["c/a", "c/a", "c/none"])
    await store.query(Query("c"))
    await store.query(Query("empty"))
    assert await store.count(Query("c")) == 2
    assert usage == Usage(reads=2 + 2 + 1 + 1, writes=2, deletes=1)


async def test_a_listener_follows_its_query(swarm: SwarmRig) -> None:
    store = swarm.store
    async with store.listen(Query("c", where=(("n", ">", 0),))) as snapshots:
        with anyio.fail_after(PATIENCE_SECONDS):
            assert await anext(snapshots) == []
            await store.commit([Create("c/a", {"n": 1}), Create("c/b", {"n": 0})])
            assert [item.id for item in await anext(snapshots)] == ["a"]
            await store.commit([Update("c/b", {"n": 5})])
            assert sorted(item.id for item in await anext(snapshots)) == ["a", "b"]
            await store.commit([Update("c/a", {"n": 0})])
            assert [item.id for item in await anext(snapshots)] == ["b"]
            await store.commit([Delete("c/b")])
            assert await anext(snapshots) == []


async def test_lost_commit_answer_neither_duplicates_a_task_nor_loses_a_claim(swarm: SwarmRig) -> None:
    cut = ("after", google.ServiceUnavailable("cut"))
    async with time_flows(swarm):
        api = unreliable(swarm, cut, cut)
        task = await swarm.submit()
        assert api.attempts > 1
        unreliable(swarm, cut)
        held = await swarm.claim()
        assert [lease.task.task_id for lease in held] == [task.task_id]
        assert (await swarm.task(task.task_id)).epoch == 1
        await swarm.settle(held[0])


async def test_unavailable_store_raises_store_unavailable_after_its_retries(swarm: SwarmRig) -> None:
    api = unreliable(swarm, *[("before", google.ServiceUnavailable("down"))] * 10)
    async with time_flows(swarm):
        with pytest.raises(StoreUnavailable, match="swarm doctor"):
            await swarm.submit()
    assert api.attempts == COMMIT_ATTEMPTS


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (google.ResourceExhausted("disk full"), StoreFull),
        (google.InvalidArgument("too large"), StoreRejected),
        (google.Aborted("lock"), Conflict),
        (google.NotFound("gone"), Conflict),
        (google.DeadlineExceeded("slow"), StoreUnavailable),
        (google.InternalServerError("oops"), StoreUnavailable),
        (google.PermissionDenied("no"), FireswarmError),
        (google.Unauthenticated("who"), FireswarmError),
    ],
)
async def test_vendor_error_is_translated_to_a_fireswarm_error(
    error: google.GoogleAPICallError, kind: type[Exception]
) -> None:
    ours = translate(error, "writing c/a")
    assert isinstance(ours, kind)
    assert str(ours).startswith("writing c/a: ")


async def test_open_swarm_opens_and_closes_a_store_in_memory() -> None:
    async with open_parts(Settings.model_validate({"store": {"uri": "memory"}})) as core:
        await core.store.commit([Create("c/a", {"n": 1})])
        assert (await core.store.get("c/a")).data == {"n": 1}


async def test_secrets_are_redacted_from_written_documents(swarm: SwarmRig) -> None:
    """The store redacts every write, even if its caller forgot to."""
    store = FirestoreStore(swarm.connect(), swarm.clock, Redactor(["hunter2-is-my-password"]))
    shaped = "sk-ant-api03-abcdefghijklmnop0123456789"
    fields = {
        "task_id": "hunter2-is-my-password",
        "objective": f"log in with hunter2-is-my-password or {shaped}",
        "context": {"deep": [{"key": shaped}], "harmless": 1},
    }
    await store.commit([Create("agent_tasks/t1", fields), Merge("agent_tasks/t2", {"error": f"401 for {shaped}"})])
    first, second = await swarm.store.get_many(["agent_tasks/t1", "agent_tasks/t2"])
    assert first.data == {
        "task_id": "hunter2-is-my-password",
        "objective": "log in with [redacted] or [redacted]",
        "context": {"deep": [{"key": "[redacted]"}], "harmless": 1},
    }
    assert second.data == {"error": "401 for [redacted]"}
