"""Recall finds facts in any language, in their current state, whoever wrote, changed or marked them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import anyio
import pytest

from fireswarm.contracts.ports import Create, Delete, Snapshot, Update
from fireswarm.contracts.skills.artifact import Artifact
from fireswarm.contracts.skills.skill import Fact
from fireswarm.errors import Conflict, InvalidInput, NotFound
from fireswarm.storage.memory import Memory, parse_fact
from fireswarm.storage.memory.fact_documents import MAX_LISTED, fact_path
from fireswarm.storage.memory.known_facts import RELOAD_SECONDS
from fireswarm.storage.memory.session_memory import CORRECTED_BY
from tests.support.swarm import SwarmRig, open_test_swarm

pytestmark = pytest.mark.anyio

TRIAL = {
    "rq": "The queue of the old service needs Redis 5 or newer.",
    "Go": "Version 1.23 is used for all services.",
    "Öl": "Wird montags geliefert.",
    "数据库": "PostgreSQL 15",
    "C#": "The desktop client is written in it.",
    "データ保持": "ログは九十日間保存されます。",
    "ฐานข้อมูล": "สำรองข้อมูลทุกคืน",
    "हिन्दी": "अनुवाद अगले महीने आएगा",
    "saq": "It has no dead letter queue.",
}
QUESTIONS = {
    "rq": "does rq fit our servers?",
    "Go": "which GO do we build with",
    "Öl": "wann kommt das öl?",
    "数据库": "我们的数据库是什么？",
    "C#": "who knows c#?",
    "データ保持": "データの保持期間は？",
    "ฐานข้อมูล": "เราสำรองฐานข้อมูลเมื่อไร",
    "हिन्दी": "हिन्दी कब?",
    "saq": "saq: retries",
}


async def learn(memory: Memory, *facts: Fact, session: str = "s1", task: str = "t1") -> None:
    await memory.store.commit(await memory.learn(session, task, facts))


def fact(key: str, value: Any, bucket: str = "b", **fields: Any) -> Fact:
    return Fact(bucket=bucket, key=key, value=value, **fields)


async def values(memory: Memory, query: str, session: str = "s1") -> list[Any]:
    return [found.value for found in await memory.recall(session, query)]


def another_process(swarm: SwarmRig) -> Memory:
    """Return a memory that has read nothing yet."""
    return Memory(swarm.store, swarm.clock)


@pytest.mark.parametrize("by_value", [False, True])
async def test_facts_of_the_trial_are_all_recalled(swarm: SwarmRig, by_value: bool) -> None:
    memory = swarm.core.memory
    named = [
        fact(f"k{number}", f"{key}: {value}") if by_value else fact(key, value)
        for number, (key, value) in enumerate(TRIAL.items())
    ]
    await learn(memory, *named)
    for number, key in enumerate(TRIAL):
        expected = f"k{number}" if by_value else key
        assert [item.key for item in await memory.recall("s1", QUESTIONS[key])][:1] == [expected], key
        assert [item.key for item in await memory.recall("s1", key)][:1] == [expected], key


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("Öl", "O\u0308L"),  # decomposed
        ("Öl", "ol"),  # without diacritics
        ("Ｐｙｔｈｏｎ", "python"),  # full width
        ("Straße", "STRASSE"),
        ("naïveté", "naivete"),
        ("Ελλάδα", "ΕΛΛΆΔΑ"),
        ("Доставка", "доставка"),
        ("موعد التسليم", "التسليم"),
        ("数据库", "据"),
        ("서울에서", "서울"),
    ],
)
async def test_words_match_in_every_spelling(swarm: SwarmRig, stored: str, asked: str) -> None:
    await learn(swarm.core.memory, fact("k1", stored), fact("k2", "something else"))
    assert await values(swarm.core.memory, asked) == [stored]


async def test_best_fact_comes_first_and_function_words_find_nothing(swarm: SwarmRig) -> None:
    memory = swarm.core.memory
    await learn(memory, fact("a", "The deploy takes an hour."), fact("b", "The deploy key is in the vault."))
    assert await values(memory, "where is the deploy key") == [
        "The deploy key is in the vault.",
        "The deploy takes an hour.",
    ]
    assert await values(memory, "what is the weather") == []
    assert await values(memory, "  ") == []


async def test_newer_fact_replaces_the_older_one_and_keeps_its_history(swarm: SwarmRig) -> None:
    memory = swarm.core.memory
    await learn(memory, fact("db", "MySQL 5", evidence=("a.yaml:3",), replaces="b/x"), task="t1")
    await swarm.clock.advance(60)
    await learn(memory, fact("db", "PostgreSQL 15", evidence=("b.yaml:9",)), task="t2")
    [found] = await memory.recall("s1", "db MySQL PostgreSQL")
    assert (found.value, found.evidence, found.source, found.replaces) == (
        "PostgreSQL 15", ("b.yaml:9",), "task t2", "",
    )  # fmt: skip
    versions = await memory.history(found.fact_id)
    assert [(item.value, item.source, item.evidence) for item in versions] == [
        ("PostgreSQL 15", "task t2", ("b.yaml:9",)),
        ("MySQL 5", "task t1", ("a.yaml:3",)),
    ]
    await learn(memory, fact("db", "Oracle", learned_at=swarm.clock.now() - timedelta(days=1)), task="t3")
    assert await values(memory, "db") == ["PostgreSQL 15"], "an older fact replaced a newer one"
    assert len(await memory.history(found.fact_id)) == 3


async def test_values_that_replace_each_other_at_once_are_all_in_the_history(swarm: SwarmRig) -> None:
    memory = swarm.core.memory
    await learn(memory, fact("db", "A"))
    both = [await memory.learn("s1", task, [fact("db", value)]) for task, value in (("t1", "B"), ("t2", "C"))]
    for writes in both:
        await swarm.store.commit(writes)
    [found] = await memory.recall("s1", "db")
    assert {item.value for item in await memory.history(found.fact_id)} == {"A", "B", "C"}


async def test_value_written_by_hand_is_kept_in_the_history(swarm: SwarmRig) -> None:
    memory, path = swarm.core.memory, fact_path("s1", "b", "db")
    await learn(memory, fact("db", "MySQL"))
    await swarm.store.commit([Update(path, {"value": "MariaDB", "source": "Ada", "owner": "team blue"})])
    await swarm.clock.advance(60)
    await learn(memory, fact("db", "PostgreSQL"))
    [found] = await memory.recall("s1", "db")
    assert {item.value for item in await memory.history(found.fact_id)} == {"MySQL", "MariaDB", "PostgreSQL"}
    assert (await swarm.store.get(path)).data["owner"] == "team blue", "an unknown field was lost"


async def test_fact_that_replaces_another_hides_it_until_it_is_wrong_itself(swarm: SwarmRig) -> None:
    memory = swarm.core.memory
    await learn(memory, fact("queue", "We use rq."))
    [old] = await memory.recall("s1", "rq")
    await learn(memory, fact("choice", "We use procrastinate.", replaces=old.fact_id))
    assert await values(memory, "which one do we use") == ["We use procrastinate."]
    [new] = await memory.recall("s1", "procrastinate")
    await memory.mark(new.fact_id, wrong=True)
    assert await values(memory, "which one do we use") == ["We use rq."]


async def test_wrong_fact_is_neither_recalled_nor_learned_again_under_another_name(swarm: SwarmRig) -> None:
    memory = swarm.core.memory
    await learn(memory, fact("db", "The database is MySQL 5."), fact("other", "The database has a replica."))
    [first, _] = await memory.recall("s1", "database MySQL")
    marked = await swarm.client.mark_fact(first.fact_id[:14], reason="we moved")
    assert marked.key == "db"
    await learn(memory, fact("db", "The database is MySQL 5.", source="again"), fact("x", "the database is mysql 5"))
    for reader in (memory, another_process(swarm)):
        assert await values(reader, "database MySQL") == ["The database has a replica."]
        assert await reader.find_wrong("s1", "The database is MySQL 5") is not None
    await learn(memory, fact("db", "The database is PostgreSQL."))
    assert "The database is PostgreSQL." in await values(memory, "database"), "the mark stayed with a new value"
    await swarm.client.mark_fact(first.fact_id, wrong=False)
    with pytest.raises(NotFound):
        await swarm.client.mark_fact("ffff")
    for name in ("", "a/b", "..", "__x__"):
        with pytest.raises(InvalidInput, match="give the id of a fact"):
            await swarm.client.mark_fact(name)
    with pytest.raises(InvalidInput, match="more than one"):
        await swarm.client.mark_fact("fact-")


async def test_corrected_fact_keeps_its_history_and_what_it_replaces(swarm: SwarmRig) -> None:
    memory = swarm.core.memory
    await learn(memory, fact("queue", "We use rq."))
    [old] = await memory.recall("s1", "rq")
    await learn(memory, fact("choice", "We use celery.", replaces=old.fact_id, evidence=("plan.md:3",)))
    [found] = await memory.recall("s1", "celery")
    await swarm.client.mark_fact(found.fact_id, reason="the plan is old")
    corrected = await swarm.client.correct_fact(found.fact_id[:14], "We use procrastinate.")
    assert (corrected.source, corrected.evidence) == (CORRECTED_BY, ())
    for reader in (memory, another_process(swarm)):
        assert await values(reader, "which one do we use") == ["We use procrastinate."]
    history = await swarm.client.fact_history(found.fact_id)
    assert [each.value for each in history] == ["We use procrastinate.", "We use celery."]
    await learn(memory, fact("choice", "We use dramatiq."))
    assert set(await values(memory, "which one do we use")) == {"We use dramatiq.", "We use rq."}
    for value in (None, {"a": object()}, "x" * 20_000):
        with pytest.raises(InvalidInput, match="give a JSON value"):
            await swarm.client.correct_fact(found.fact_id, value)


async def test_corrected_fact_stays_in_its_project_and_a_forgotten_one_is_not_made_again(
    swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, mill = (Memory(swarm.store, swarm.clock, project) for project in ("", "mill"))
    shop = Memory(swarm.store, swarm.clock, "shop")
    for memory, name in ((alone, "alone"), (mill, "mill")):
        await learn(memory, fact(name, f"The {name} database is MySQL."))
        [found] = await memory.recall("s1", name)
        await shop.correct(found.fact_id, f"The {name} database is PostgreSQL.")
        assert await values(memory, name) == [f"The {name} database is PostgreSQL."]
    assert await shop.recall("s9", "database") == []
    assert len(await Memory(swarm.store, swarm.clock, "mill").recall("s9", "database")) == 1
    [found] = await mill.recall("s1", "mill")
    snapshot = await mill.find(found.fact_id)
    await mill.forget(found.fact_id)

    async def find(memory: Memory, fact_id: str) -> Snapshot:
        return snapshot  # as it was before another person forgot it

    monkeypatch.setattr(Memory, "find", find)
    with pytest.raises(Conflict):
        await mill.correct(found.fact_id, "again")
    assert (await swarm.store.get(snapshot.path)).data is None


async def test_mark_can_be_removed(swarm: SwarmRig) -> None:
    memory = swarm.core.memory
    await learn(memory, fact("db", "MySQL"))
    [found] = await memory.recall("s1", "db")
    await swarm.client.mark_fact(found.fact_id)
    assert await values(memory, "db") == []
    assert await memory.bucket("s1", "b") == []
    await swarm.client.mark_fact(found.fact_id, wrong=False)
    assert await values(memory, "db") == ["MySQL"]


@pytest.mark.parametrize("mark", [True, 1, "yes", "Ada says no longer true", {"by": "Ada"}])
async def test_mark_by_hand_counts_at_once_in_any_form(swarm: SwarmRig, mark: Any) -> None:
    memory = swarm.core.memory
    await learn(memory, fact("db", "MySQL"))
    assert await values(memory, "db") == ["MySQL"]
    await swarm.store.commit([Update(fact_path("s1", "b", "db"), {"wrong": mark})])
    assert await values(memory, "db") == []


@pytest.mark.parametrize("mark", [False, 0, "", "no", None])
async def test_mark_that_says_no_is_no_mark(swarm: SwarmRig, mark: Any) -> None:
    memory = swarm.core.memory
    await learn(memory, fact("db", "MySQL"))
    await swarm.store.commit([Update(fact_path("s1", "b", "db"), {"wrong": mark})])
    assert await values(memory, "db") == ["MySQL"]


HAND_WRITTEN: dict[str, dict[str, Any]] = {
    "only the value": {"value": "apples"},
    "text instead of value": {"text": "apples"},
    "keywords as text": {"value": "fruit", "keywords": "apples, pears"},
    "numbers as names": {"bucket": 7, "key": 3.5, "value": "apples"},
    "odd optional values": {"value": "apples", "confidence": "high", "learned_at": "yesterday", "evidence": 5},
    "odd lists": {"value": "apples", "keywords": [None, 1, {"a": 2}], "evidence": {"a": "b"}, "source": ["x"]},
    "too many keywords": {"value": "fruit", "keywords": ["apples", *(f"w{n}" for n in range(2 * MAX_LISTED))]},
    "long names": {"bucket": "b" * 1_000, "key": "k" * 2_000, "value": "apples"},
    "a map": {"value": {"fruit": ["apples", None, 3, True]}},
    "a time in the future": {"value": "apples", "created_at": None, "learned_at": None},
    "unknown fields": {"value": "apples", "owner": "Ada", "colour": 3},
    "replaces itself": {"value": "apples", "replaces": "by-hand"},
    "an odd session_hash elsewhere": {"value": "apples", "project": 5, "source_task_id": 9},
}


@pytest.mark.parametrize("name", HAND_WRITTEN)
async def test_hand_written_fact_with_odd_values_is_recalled_like_others(swarm: SwarmRig, name: str) -> None:
    memory = swarm.core.memory
    await learn(memory, fact("k", "apples are red"))
    assert len(await memory.recall("s1", "apples")) == 1
    written = HAND_WRITTEN[name] | {"type": "fact", "session_hash": "s1"}
    if name == "a time in the future":
        written |= {"created_at": swarm.clock.now() + timedelta(days=30_000)}
    await swarm.store.commit([Create("mcp_memory/by-hand", written)])
    await swarm.clock.advance(60)
    found = await memory.recall("s1", "apples")
    assert {item.fact_id for item in found} == {"by-hand", fact_path("s1", "b", "k").partition("/")[2]}
    await learn(memory, fact("later", "apples again"))
    assert len(await memory.recall("s1", "apples")) == 3, "a hand-written document hides what is stored after it"


async def test_documents_changed_by_hand_are_recalled_as_they_are_now(swarm: SwarmRig) -> None:
    memory = swarm.core.memory
    await learn(memory, fact("a", "apples"), fact("b", "pears"), fact("c", "plums"))
    assert await values(memory, "apples pears") != []
    await swarm.store.commit([Update(fact_path("s1", "b", "a"), {"value": "apples, but green"})])
    await swarm.store.commit([Delete(fact_path("s1", "b", "b"))])
    assert await values(memory, "apples pears") == ["apples, but green"]
    await swarm.store.commit([Update(fact_path("s1", "b", "c"), {"value": "cherries"})])
    await swarm.clock.advance(RELOAD_SECONDS)
    assert await values(memory, "cherries") == ["cherries"]


async def test_newer_document_of_the_same_name_wins_whoever_wrote_it(swarm: SwarmRig) -> None:
    memory = swarm.core.memory
    by_hand = {"type": "fact", "session_hash": "s1", "bucket": "b", "key": "db", "value": "MySQL"}
    await swarm.store.commit([Create("mcp_memory/by-hand", by_hand)])
    await swarm.clock.advance(60)
    await learn(memory, fact("db", "PostgreSQL"))
    assert await values(memory, "db") == ["PostgreSQL"]
    await swarm.client.mark_fact("by-hand")
    assert await values(memory, "db") == ["PostgreSQL"], "a mark on the older one hid the newer one"
    await swarm.store.commit([Update("mcp_memory/by-hand", {"value": "SQLite", "wrong": False})])
    assert await values(another_process(swarm), "db") == ["SQLite"]


async def test_facts_stored_by_another_process_are_recalled(swarm: SwarmRig) -> None:
    memory, other = swarm.core.memory, another_process(swarm)
    assert await values(memory, "apples") == []
    for number in range(5):
        await learn(other, fact(f"k{number}", f"apples {number}"))
        assert len(await values(memory, "apples")) == number + 1
        await swarm.clock.advance(20)


async def test_recall_reads_new_documents_only(swarm: SwarmRig) -> None:
    memory = swarm.core.memory
    await learn(memory, *(fact(f"k{number}", f"word{number}") for number in range(300)))
    await swarm.clock.advance(60)
    await values(memory, "word7")
    before = swarm.store.usage.copy()
    assert await values(memory, "word8") == ["word8"]
    assert swarm.store.usage.minus(before).reads <= 4


async def test_many_recalls_at_once_read_the_facts_once(swarm: SwarmRig) -> None:
    memory = swarm.core.memory
    await learn(memory, *(fact(f"k{number}", f"word{number}") for number in range(100)))
    await swarm.clock.advance(60)
    before = swarm.store.usage.copy()
    async with anyio.create_task_group() as group:
        for number in range(10):
            group.start_soon(values, memory, f"word{number}")
    assert swarm.store.usage.minus(before).reads <= 100 + 10 * 4


async def test_read_that_ends_late_does_not_bring_back_an_older_state(swarm: SwarmRig) -> None:
    memory, path = swarm.core.memory, fact_path("s1", "b", "db")
    await learn(memory, fact("db", "MySQL"))
    late = await swarm.store.get(path)
    await swarm.store.commit([Update(path, {"wrong": True})])
    assert await values(memory, "db") == []
    known = memory.known["session_hash", "s1"]
    known.look_at([late])
    assert known.rank("db") == []


async def test_summaries_are_recalled_with_their_task(swarm: SwarmRig) -> None:
    memory, task = swarm.core.memory, await swarm.submit()
    artifact = Artifact(type="session_summary", name="s", value="The parser crashes on empty input.")
    await swarm.store.commit(memory.summarise(task, artifact))
    [found] = await memory.recall("s1", "why does the parser crash")
    assert (found.bucket, found.value, found.source) == ("summaries", artifact.value, f"task {task.task_id}")


async def test_sessions_stay_apart_unless_both_share_their_project(swarm: SwarmRig) -> None:
    apart, one, other = (Memory(swarm.store, swarm.clock, project) for project in ("", "shop", "mill"))
    await learn(apart, fact("a", "apples kept"), session="s1")
    await learn(one, fact("b", "apples shared"), session="s2")
    assert await values(apart, "apples", "s2") == ["apples shared"]
    assert await values(apart, "apples", "s3") == []
    assert await values(one, "apples", "s3") == ["apples shared"]
    assert set(await values(one, "apples", "s1")) == {"apples kept", "apples shared"}
    assert await values(other, "apples", "s3") == []


async def test_setting_names_the_project_whose_sessions_share_facts() -> None:
    async with open_test_swarm() as swarm:
        assert swarm.core.settings.shared_project == ""
    async with open_test_swarm(memory={"share": ["project"], "project": "shop"}) as swarm:
        assert swarm.core.settings.shared_project == "shop"
    async with open_test_swarm(memory={"share": ["project"]}) as swarm:
        root = swarm.core.settings.root.resolve()
        assert swarm.core.settings.shared_project.startswith(f"{root.name}-")
        assert (await swarm.store.get("mcp_memory/none")).data is None


async def test_forgotten_fact_leaves_no_version(swarm: SwarmRig) -> None:
    memory = swarm.core.memory
    await learn(memory, fact("db", "MySQL"))
    path = fact_path("s1", "b", "db")
    await swarm.client.forget_fact(path.partition("/")[2])
    assert await values(memory, "db") == []
    with pytest.raises(NotFound):
        await swarm.client.forget_fact(path.partition("/")[2])
    await swarm.store.commit([Create(path, {"type": "fact", "session_hash": "s1", "value": "new"})])
    assert [item.value for item in await memory.history(path.partition("/")[2])] == ["new"]


async def test_document_without_a_value_is_no_fact(swarm: SwarmRig) -> None:
    await swarm.store.commit([Create("mcp_memory/bad", {"type": "fact", "session_hash": "s1", "key": "apples"})])
    assert await values(swarm.core.memory, "apples") == []
    with pytest.raises(InvalidInput, match="mcp_memory/bad is not a fact"):
        parse_fact(await swarm.store.get("mcp_memory/bad"))
