"""Conversations behave the same in every backend: embedded, over gRPC, opened for each call, in a real PostgreSQL."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fireswarm.clocks import VirtualClock
from fireswarm.contracts.ports import ConversationStore
from fireswarm.contracts.skills.context import Conversation, ConversationChange, TurnHold
from fireswarm.contracts.skills.conversation import (
    MAX_EVENTS,
    MAX_FACT_BYTES,
    MAX_FACTS_PER_BUCKET,
    MAX_MESSAGES,
    MAX_SUMMARY_CHARS,
    ConversationEvent,
    PocketFact,
    TaskState,
)
from fireswarm.errors import DuplicateMessage, InvalidInput, VersionConflict
from tests.support.conversations import opened

pytestmark = pytest.mark.anyio


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture(params=["embedded", "grpc", "stand-alone", "postgres"])
async def contexts(
    request: pytest.FixtureRequest, clock: VirtualClock, tmp_path: Path
) -> AsyncIterator[ConversationStore]:
    url = request.getfixturevalue("database_url") if request.param == "postgres" else ""
    async with opened(request.param, clock, tmp_path, url) as kept:
        yield kept


@pytest.fixture
def name() -> str:
    return f"talk-{uuid.uuid4().hex[:12]}"


def first(name: str, **fields: Any) -> ConversationChange:
    return ConversationChange(
        name, 0, session_hash="s1", skill="asking", task_state=TaskState.IN_PROGRESS, turn=1, **fields
    )


def note(number: int) -> ConversationEvent:
    return ConversationEvent(type="note", payload={"number": number})


def told(context: Conversation | None) -> dict[str, Any]:
    """Return the content of a conversation as plain data, without store metadata."""
    assert context is not None
    return {
        "state": context.state.model_dump(),
        "facts": [fact.model_dump() for fact in context.facts],
        "events": [event.model_dump() for event in context.events],
        "messages": list(context.messages),
    }


async def test_applied_change_is_read_back(contexts: ConversationStore, name: str) -> None:
    assert await contexts.load(name) is None
    change = first(
        name,
        inputs={"where": "north", "list": [[1, 2], [3]], "none": None, "half": 0.5},
        facts=(PocketFact(bucket="plan", key="a/b", value={"deep": [1, [2]]}), PocketFact(key="nothing", value=None)),
        events=(note(1), note(2)),
        input_request={"missing": ["depth"]},
        detail="asks",
        agent_id="scout-1",
    )
    written = await contexts.apply(change)
    assert told(await contexts.load(name)) == told(written)
    assert (written.state.version, written.state.session_hash, written.state.skill) == (1, "s1", "asking")
    assert [event.sequence for event in written.events] == [1, 2]
    after = await contexts.apply(
        ConversationChange(name, 1, task_state=TaskState.INPUT_REQUIRED, input_request={}, hold=TurnHold("x"))
    )
    assert told(await contexts.load(name)) == told(after)
    assert (after.state.turn, after.state.inputs, after.state.input_request) == (1, change.inputs, {})


async def test_change_with_a_wrong_version_is_rejected(contexts: ConversationStore, name: str) -> None:
    await contexts.apply(first(name))
    for wrong in (0, 2):
        with pytest.raises(VersionConflict, match="at version 1"):
            await contexts.apply(ConversationChange(name, wrong, turn=9))
    with pytest.raises(VersionConflict):
        await contexts.apply(ConversationChange(f"{name}-none", 3))
    read = await contexts.load(name)
    assert read is not None and (read.state.turn, read.state.version) == (1, 1)


async def test_concurrent_writers_never_share_a_version(contexts: ConversationStore, name: str) -> None:
    await contexts.apply(first(name))
    won: list[int] = []

    async def write(number: int) -> None:
        done = False
        while not done:
            read = await contexts.load(name)
            assert read is not None
            with contextlib.suppress(VersionConflict):
                fact = PocketFact(key=f"writer-{number}", value=number)
                await contexts.apply(
                    ConversationChange(name, read.state.version, facts=(fact,), events=(note(number),))
                )
                won.append(read.state.version + 1)
                done = True

    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(write, number)
    read = await contexts.load(name)
    assert read is not None and sorted(won) == list(range(2, 10))
    assert sorted(fact.value for fact in read.facts) == list(range(8))
    assert [event.sequence for event in read.events] == list(range(1, 9))


async def test_concurrent_first_changes_create_one_conversation(contexts: ConversationStore, name: str) -> None:
    began: list[int] = []

    async def begin(number: int) -> None:
        with contextlib.suppress(VersionConflict):
            await contexts.apply(first(name, inputs={"by": number}))
            began.append(number)

    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(begin, number)
    read = await contexts.load(name)
    assert read is not None and [read.state.inputs["by"]] == began


async def test_facts_expire_after_their_time_to_live(
    contexts: ConversationStore, clock: VirtualClock, name: str
) -> None:
    kept = (PocketFact(key="short", value=1, ttl_seconds=60), PocketFact(key="long", value=2))
    await contexts.apply(first(name, facts=kept))
    await clock.advance(59)
    assert [fact.key for fact in told_facts(await contexts.load(name))] == ["long", "short"]
    await clock.advance(1)
    assert [fact.key for fact in told_facts(await contexts.load(name))] == ["long"]
    after = await contexts.apply(ConversationChange(name, 1, facts=(PocketFact(key="short", value=3),)))
    assert told(await contexts.load(name)) == told(after)
    assert {fact.key: fact.value for fact in after.facts} == {"long": 2, "short": 3}


def told_facts(context: Conversation | None) -> list[Any]:
    assert context is not None
    return list(context.facts)


async def test_repeated_message_is_rejected_with_its_first_response(contexts: ConversationStore, name: str) -> None:
    change = first(name, message_id="m-1", response={"said": "yes", "list": [1]}, events=(note(1),))
    await contexts.apply(change)
    for version in (0, 1):
        with pytest.raises(DuplicateMessage) as duplicate:
            await contexts.apply(replace(change, expected_version=version))
        assert duplicate.value.response == {"said": "yes", "list": [1]}
    assert await contexts.response(name, "m-1") == {"said": "yes", "list": [1]}
    assert await contexts.response(name, "m-2") is None
    read = await contexts.load(name)
    assert read is not None and (read.state.version, len(read.events)) == (1, 1)


async def test_facts_events_messages_and_summary_are_bounded(contexts: ConversationStore, name: str) -> None:
    await contexts.apply(first(name))
    for number in range(MAX_MESSAGES + 5):
        facts = tuple(PocketFact(key=f"{number:03}-{part}", value="x" * 10) for part in range(2))
        events = tuple(ConversationEvent(payload={"number": 3 * number + n, "text": "y" * 300}) for n in range(3))
        await contexts.apply(
            ConversationChange(name, number + 1, turn=2, facts=facts, events=events, message_id=f"m{number}")
        )
    read = await contexts.load(name)
    assert read is not None
    assert len(read.facts) == MAX_FACTS_PER_BUCKET and read.facts[-1].key == f"{MAX_MESSAGES + 4:03}-1"
    assert len(read.events) == MAX_EVENTS and read.events[-1].payload["number"] == 3 * (MAX_MESSAGES + 5) - 1
    assert len(read.messages) == MAX_MESSAGES and await contexts.response(name, "m0") is None
    assert 0 < len(read.state.summary) <= MAX_SUMMARY_CHARS
    assert "number=64" in read.state.summary, "what the log dropped last is in the summary"
    with pytest.raises(InvalidInput, match="larger than"):
        await contexts.apply(
            ConversationChange(name, read.state.version, facts=(PocketFact(key="k", value="x" * MAX_FACT_BYTES),))
        )
    with pytest.raises(InvalidInput, match="buckets"):
        many = tuple(PocketFact(bucket=f"b{n}", key="k", value=1) for n in range(30))
        await contexts.apply(ConversationChange(name, read.state.version, facts=many))
    with pytest.raises(InvalidInput, match="not JSON"):
        await contexts.apply(
            ConversationChange(name, read.state.version, facts=(PocketFact(key="k", value=float("nan")),))
        )
    assert told(await contexts.load(name)) == told(read)


async def test_secrets_are_not_stored(contexts: ConversationStore, name: str) -> None:
    secret = "hunter2-hunter2"
    await contexts.apply(
        first(
            name,
            inputs={"api_key": "anything at all", "note": f"it is {secret}"},
            facts=(
                PocketFact(key="password", value="short"),
                PocketFact(key="said", value=["password=letmein", secret]),
            ),
            events=(ConversationEvent(payload={"header": "Authorization: Bearer abcdefgh12345678"}),),
            summary=f"they said {secret}",
            message_id="m",
            response={"client_secret": "shh", "text": secret},
        )
    )
    held = str(told(await contexts.load(name))) + str(await contexts.response(name, "m"))
    for part in (secret, "anything at all", "letmein", "short", "shh", "abcdefgh12345678"):
        assert part not in held, part


async def test_ended_conversation_is_pruned_after_its_retention_time(
    contexts: ConversationStore, clock: VirtualClock, name: str
) -> None:
    await contexts.apply(first(name, facts=(PocketFact(key="k", value=1),), message_id="m", response={}))
    await contexts.apply(first(f"{name}-open"))
    await contexts.apply(ConversationChange(name, 1, task_state=TaskState.COMPLETED))
    await clock.advance(29 * 86_400)
    await contexts.prune(clock.now())
    assert await contexts.load(name) is not None
    await clock.advance(2 * 86_400)
    assert await contexts.prune(clock.now()) >= 1
    assert await contexts.load(name) is None and await contexts.response(name, "m") is None
    assert await contexts.load(f"{name}-open") is not None, "one that waits is kept"


@pytest.mark.parametrize("wrong", ["", "..", "a/b", "../up", "a..b", ".hidden", "x" * 300, "a\nb"])
async def test_unsafe_conversation_name_is_refused(contexts: ConversationStore, wrong: str) -> None:
    with pytest.raises(InvalidInput, match="is not a valid conversation id"):
        await contexts.load(wrong)
    with pytest.raises(InvalidInput, match="is not a valid conversation id"):
        await contexts.apply(first(wrong))


# ── random histories against a plain model ──────────────────────────────────────────────────────────────

KEYS = st.sampled_from(["a", "b", "c"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text("xyz é", max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=2),
    max_leaves=4,
)
FACTS = st.lists(
    st.builds(
        PocketFact, bucket=st.sampled_from(["p", "q"]), key=KEYS, value=VALUES, ttl_seconds=st.none() | st.just(30)
    ),
    max_size=3,
)
STEPS = st.lists(
    st.tuples(st.integers(-1, 0), FACTS, st.integers(0, 2), st.sampled_from([None, "m1", "m2", "m3"]), st.just(20)),
    min_size=1,
    max_size=8,
)


class Model:
    """A plain in-memory model of a conversation: version, facts, number of events, answers."""

    def __init__(self) -> None:
        self.version = 0
        self.facts: dict[tuple[str, str], tuple[Any, float | None]] = {}
        self.events = 0
        self.answers: dict[str, Any] = {}

    def apply(self, offset: int, facts: list[PocketFact], events: int, message: str | None, now: float) -> str:
        if message in self.answers:
            return "duplicate"
        if offset:
            return "conflict"
        self.version += 1
        for fact in facts:
            until = None if fact.ttl_seconds is None else now + fact.ttl_seconds
            self.facts[fact.bucket, fact.key] = (fact.value, until)
        self.events += events
        if message is not None:
            self.answers[message] = {"version": self.version}
        return "applied"

    def living(self, now: float) -> dict[tuple[str, str], Any]:
        return {name: value for name, (value, until) in self.facts.items() if until is None or until > now}


@pytest.mark.parametrize("backend", ["embedded", "stand-alone", "postgres"])
@given(steps=STEPS)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_history_matches_a_plain_model(
    backend: str, steps: list[Any], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue("database_url") if backend == "postgres" else ""
    asyncio.run(lived(backend, steps, tmp_path, url))


async def lived(backend: str, steps: list[Any], folder: Path, url: str) -> None:
    clock, model, name, began = VirtualClock(), Model(), f"talk-{uuid.uuid4().hex}", VirtualClock().now()
    async with opened(backend, clock, folder, url) as contexts:
        for offset, facts, events, message, pause in steps:
            now = (clock.now() - began).total_seconds()
            expected = model.version + offset
            change = first(name) if model.version == 0 else ConversationChange(name, expected)
            change = replace(
                change,
                expected_version=max(0, expected) if model.version else (0 if not offset else 7),
                facts=tuple(facts),
                events=tuple(note(number) for number in range(events)),
                message_id=message,
                response={"version": model.version + 1},
            )
            try:
                await contexts.apply(change)
                outcome = "applied"
            except DuplicateMessage as duplicate:
                outcome = "duplicate"
                assert duplicate.response == model.answers[str(message)]
            except VersionConflict:
                outcome = "conflict"
            assert outcome == model.apply(offset, facts, events, message, now)
            await clock.advance(pause)
            read = await contexts.load(name)
            if read is None:
                assert model.version == 0
                continue
            later = (clock.now() - began).total_seconds()
            assert {fact.name: fact.value for fact in read.facts} == model.living(later)
            assert (read.state.version, read.state.event_count) == (model.version, model.events)
