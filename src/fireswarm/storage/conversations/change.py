"""Apply a change to a conversation. Pure: every backend stores the result of this function.

Limits, times to live and redaction are therefore the same in every store.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, cast

from fireswarm.contracts.base import JsonObject
from fireswarm.contracts.skills.context import Conversation, ConversationChange, ConversationState, KeptFact, TurnHold
from fireswarm.contracts.skills.conversation import (
    MAX_BUCKETS,
    MAX_EVENT_BYTES,
    MAX_EVENTS,
    MAX_FACT_BYTES,
    MAX_FACTS_PER_BUCKET,
    MAX_INPUT_BYTES,
    MAX_MESSAGES,
    MAX_RESPONSE_BYTES,
    MAX_SUMMARY_CHARS,
    LoggedEvent,
    PocketFact,
)
from fireswarm.errors import DuplicateMessage, InvalidInput, VersionConflict
from fireswarm.storage.conversations.cleaning import Cleaner
from fireswarm.storage.conversations.summary import append_to_summary

MAX_DEPTH = 16
"""Maximum nesting of a value. Firestore allows 20 levels, including the document's maps."""


@dataclass(frozen=True, slots=True)
class Advanced:
    """The conversation after a change, with the items that a store must write and remove."""

    context: Conversation
    put_facts: tuple[KeptFact, ...] = ()
    drop_facts: tuple[tuple[str, str], ...] = ()
    new_events: tuple[LoggedEvent, ...] = ()
    dropped_events: tuple[LoggedEvent, ...] = ()
    drop_messages: tuple[str, ...] = ()
    response: JsonObject | None = None


@dataclass(slots=True)
class _Facts:
    kept: dict[tuple[str, str], KeptFact] = field(default_factory=dict)
    put: dict[tuple[str, str], KeptFact] = field(default_factory=dict)
    drop: set[tuple[str, str]] = field(default_factory=set)


def advance(found: Conversation | None, change: ConversationChange, now: datetime, clean: Cleaner) -> Advanced:
    """Apply *change* to the stored conversation *found*.

    Raises DuplicateMessage if its message was already applied (the store has the response), VersionConflict if *found*
    is not at the expected version or has another holder, InvalidInput if a size limit is exceeded.
    """
    if is_duplicate(found, change):
        raise duplicate(change)
    version = found.state.version if found else 0
    if version != change.expected_version:
        raise VersionConflict(
            f"conversation {change.context_id} is at version {version}, not {change.expected_version}: "
            "it changed since it was read"
        )
    holder = found.state.holder if found else ""
    if change.expected_holder not in (None, holder):
        raise VersionConflict(f"another call has the turn of conversation {change.context_id}")
    before = found or Conversation(_new(change, now))
    if change.begins_turn:
        return Advanced(replace(before, state=_take_turn(before.state, change, now)))
    facts = _with_facts(before, change.facts, now, clean)
    logged = _append_log(before.state, change, now, clean)
    events = (*before.events, *logged)
    dropped, events = events[: max(0, len(events) - MAX_EVENTS)], events[-MAX_EVENTS:]
    messages = before.messages if change.message_id is None else (*before.messages, change.message_id)
    state = _state(before.state, change, now, clean, logged, dropped)
    return Advanced(
        Conversation(state, tuple(facts.kept.values()), events, messages[-MAX_MESSAGES:]),
        put_facts=tuple(facts.put.values()),
        drop_facts=tuple(facts.drop),
        new_events=logged,
        dropped_events=dropped,
        drop_messages=messages[:-MAX_MESSAGES],
        response=_kept_response(change, clean),
    )


def is_duplicate(found: Conversation | None, change: ConversationChange) -> bool:
    """Return True if the change's message was already applied."""
    return found is not None and change.message_id in found.messages


def duplicate(change: ConversationChange, answer: JsonObject | None = None) -> DuplicateMessage:
    """Return the error for a message that was already handled, with its response."""
    message = f"message {change.message_id} of conversation {change.context_id} was already handled"
    return DuplicateMessage(message, answer)


def restore(
    state: ConversationState,
    facts: Iterable[KeptFact],
    events: Iterable[LoggedEvent],
    messages: Iterable[str],
    now: datetime,
    stamp: Any = None,
) -> Conversation:
    """Build a conversation from stored data. Expired facts that are still stored are excluded."""
    ordered = sorted(facts, key=lambda fact: (fact.at, fact.name))
    return Conversation(
        state,
        tuple(fact for fact in ordered if not _is_expired(fact, now)),
        tuple(events),
        tuple(messages),
        gone=tuple(fact.name for fact in ordered if _is_expired(fact, now)),
        stamp=stamp,
    )


def _is_expired(fact: KeptFact, now: datetime) -> bool:
    return fact.expires_at is not None and fact.expires_at <= now


def json_size(value: Any, what: str) -> int:
    """Return the size of *value* as JSON in bytes. Raises InvalidInput if it is not JSON or too deeply nested."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{what} is not JSON: {error}") from error
    if _depth(value) > MAX_DEPTH:
        raise InvalidInput(f"{what} is nested more than {MAX_DEPTH} levels deep")
    return len(text.encode("utf-8", "replace"))


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max((_depth(item) for item in cast("dict[Any, Any]", value).values()), default=0)
    if isinstance(value, (list, tuple)):
        return 1 + max((_depth(item) for item in cast("list[Any]", value)), default=0)
    return 0


def _new(change: ConversationChange, now: datetime) -> ConversationState:
    return ConversationState(
        context_id=change.context_id,
        session_hash=change.session_hash,
        skill=change.skill,
        resume_key=secrets.token_hex(32),
        created_at=now,
        updated_at=now,
    )


def _take_turn(before: ConversationState, change: ConversationChange, now: datetime) -> ConversationState:
    """Return the state with its new holder. A conversation whose first turn never ends expires."""
    expires_at = before.expires_at if before.turn else now + timedelta(days=change.retention_days)
    return before.model_copy(update=_fields_of(change.hold) | {"updated_at": now, "expires_at": expires_at})


def _fields_of(hold: TurnHold | None) -> dict[str, Any]:
    if hold is None:
        return {}
    return {"holder": hold.holder, "held_message": hold.message_id, "held_until": hold.until}


def _state(
    before: ConversationState,
    change: ConversationChange,
    now: datetime,
    clean: Cleaner,
    logged: tuple[LoggedEvent, ...],
    dropped: tuple[LoggedEvent, ...],
) -> ConversationState:
    """Return the new state: its version, summary, counters and expiry."""
    summary = before.summary if change.summary is None else clean.text(change.summary)
    if dropped:
        summary = append_to_summary(summary, dropped)
    given: dict[str, Any] = {
        "task_state": change.task_state,
        "turn": change.turn,
        "detail": None if change.detail is None else clean.text(change.detail)[:50],
        "summary_task": change.summary_task,
        "inputs": _limit(change.inputs, MAX_INPUT_BYTES, "the inputs", clean),
        "input_request": _limit(change.input_request, MAX_INPUT_BYTES, "the input request", clean),
    }
    update = {name: value for name, value in given.items() if value is not None}
    state = change.task_state or before.task_state
    return before.model_copy(
        update=update
        | _fields_of(change.hold)
        | {
            "version": before.version + 1,
            "summary": summary[:MAX_SUMMARY_CHARS],
            "event_count": before.event_count + len(logged),
            "updated_at": now,
            "expires_at": now + timedelta(days=change.retention_days) if state.terminal else None,
        }
    )


def _with_facts(before: Conversation, new: Iterable[PocketFact], now: datetime, clean: Cleaner) -> _Facts:
    """Return the facts after the change, without expired facts and without the oldest of each full bucket."""
    facts = _Facts(drop=set(before.gone))
    for fact in before.facts:
        if _is_expired(fact, now):
            facts.drop.add(fact.name)
        else:
            facts.kept[fact.name] = fact
    for given in new:
        if json_size(given.value, f"fact {given.bucket}/{given.key}") > MAX_FACT_BYTES:
            raise InvalidInput(
                f"fact {given.bucket}/{given.key} is larger than {MAX_FACT_BYTES:,} bytes: "
                "store the content as an artifact and its URI as the fact"
            )
        until = now + timedelta(seconds=given.ttl_seconds) if given.ttl_seconds is not None else None
        fact = KeptFact(
            bucket=given.bucket,
            key=clean.text(given.key),
            value=clean.clean_named(given.key, given.value),
            at=now,
            ttl_seconds=given.ttl_seconds,
            expires_at=until,
        )
        facts.kept.pop(fact.name, None)  # a rewritten fact becomes the newest
        facts.kept[fact.name] = facts.put[fact.name] = fact
        facts.drop.discard(fact.name)
    _evict(facts)
    return facts


def _evict(facts: _Facts) -> None:
    """Drop the oldest facts of each full bucket. Raises InvalidInput for too many buckets."""
    buckets: dict[str, list[tuple[str, str]]] = {}
    for name in facts.kept:
        buckets.setdefault(name[0], []).append(name)
    if len(buckets) > MAX_BUCKETS:
        raise InvalidInput(
            f"a conversation may have at most {MAX_BUCKETS} buckets of facts: {', '.join(sorted(buckets))}"
        )
    for names in buckets.values():
        for name in names[:-MAX_FACTS_PER_BUCKET]:
            del facts.kept[name]
            facts.put.pop(name, None)
            facts.drop.add(name)  # also for a fact of this change: an earlier value may be stored


def _append_log(
    state: ConversationState, change: ConversationChange, now: datetime, clean: Cleaner
) -> tuple[LoggedEvent, ...]:
    """Return the change's events as log entries, numbered after the existing ones."""
    turn = change.turn if change.turn is not None else state.turn
    return tuple(
        LoggedEvent(
            sequence=state.event_count + number,
            type=event.type,
            payload=_small(clean.value(event.payload), event.type),
            turn=turn,
            at=now,
            agent_id=change.agent_id,
        )
        for number, event in enumerate(change.events, 1)
    )


def _small(payload: JsonObject, kind: str) -> JsonObject:
    """Truncate a payload to the log's size limit."""
    if json_size(payload, f"the payload of event {kind!r}") <= MAX_EVENT_BYTES:
        return payload
    return {"cut": json.dumps(payload, ensure_ascii=True)[: MAX_EVENT_BYTES // 2]}


def _limit(value: JsonObject | None, most: int, what: str, clean: Cleaner) -> JsonObject | None:
    if value is None:
        return None
    if json_size(value, what) > most:
        raise InvalidInput(f"{what} has more than {most:,} bytes: pass large content by its path or URI")
    return clean.value(value)


def _kept_response(change: ConversationChange, clean: Cleaner) -> JsonObject | None:
    if change.message_id is None or change.response is None:
        return None
    cleaned: JsonObject = clean.value(change.response)
    return cleaned if json_size(cleaned, "the response") <= MAX_RESPONSE_BYTES else None
