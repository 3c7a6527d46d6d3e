"""Read the conversation of a task from its runs: what its model answered, called and was told, as it is stored."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from fireswarm.contracts.ports import Blobs, Store
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import InvalidInput, NotFound, StoreError
from fireswarm.runs.sinks.run_reader import read_events
from fireswarm.runs.steps import STEP_FINISHED, step_name
from fireswarm.storage.documents.paths import run_path

GIVEN = "0/inputs"
"""Step with what the model was given besides its task, before its first answer."""

MAX_RESULT_BYTES = 200_000
"""Limit of the file of a result that is read."""

MAX_RUNS = 50
"""Maximum number of runs of a task that are read, the newest."""

_STEP = re.compile(
    r"(?P<phase>\d{1,9})/(?P<kind>llm|act|ask|budget|denied|steering|message):(?P<answer>\d{1,9})\.?(?P<part>\d{0,9})$"
)

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class SeenCall:
    """A call of a model: its tool, its input, and its output as it was recorded; ``denied`` is why it was refused."""

    tool: str
    given: Mapping[str, Any]
    output: str = ""
    denied: str = ""


@dataclass(slots=True)
class SeenAnswer:
    """One answer of a model. ``heard`` is what a person or an agent said before it; ``usd`` is None without a price.

    ``thinking`` is what the model thought before it, where its provider tells that, or a summary of it. ``phase`` is
    the number of plans that were made before it, ``number`` counts the answers of the phase from 1.
    """

    phase: int
    number: int
    text: str = ""
    thinking: str = ""
    model: str = ""
    tokens: int = 0
    usd: float | None = None
    heard: str = ""
    calls: list[SeenCall] = field(default_factory=list[SeenCall])


@dataclass(frozen=True, slots=True)
class _Record:
    """A finished step of an answer: what it is, of which call, and its event's payload."""

    kind: str
    part: str
    payload: Mapping[str, Any]


Place = tuple[int, int]
"""The phase and the number of an answer."""


@dataclass(frozen=True, slots=True)
class StoredConversation:
    """The answers of a task's model, found but not read: their results may be files.

    ``given`` is what the task's model was given besides its task; ``tokens`` and ``usd`` are those of all its runs,
    None without a price.
    """

    blobs: Blobs
    records: Mapping[Place, Sequence[_Record]]
    given: str = ""
    tokens: int = 0
    usd: float | None = None

    @property
    def places(self) -> list[Place]:
        """The places of the answers, in order."""
        return sorted(self.records)

    async def read(self, place: Place) -> SeenAnswer | None:
        """Read one answer, None if it is not stored here. A result that is gone or too large is empty."""
        if place not in self.records:
            return None
        seen = SeenAnswer(*place)
        for record in sorted(self.records[place], key=lambda each: each.kind != "llm"):  # it lists the calls
            _add(seen, record.kind, record.part, await _result_of(self.blobs, record.payload))
        return seen


async def find_conversation(store: Store, blobs: Blobs, task: Task) -> StoredConversation:
    """Find the answers of a task's model, without those of the task that it goes on with.

    A step that was executed again counts as it was last. Raises StoreError.
    """
    numbers = range(max(1, task.epoch + 1 - MAX_RUNS), task.epoch + 1)
    records: dict[Place, dict[tuple[str, str], _Record]] = {}
    given, usages = "", list[Mapping[str, Any]]()
    for run in await store.get_many([run_path(task.run_id(number)) for number in numbers]):
        usages.append(_map((run.data or {}).get("usage")))
        for event in await read_events(store, run) if run.data is not None else ():
            payload = _map(event.get("payload"))
            step = step_name(str(payload.get("step")))
            if event.get("type") != STEP_FINISHED:
                continue
            if step == GIVEN:
                given = str((await _result_of(blobs, payload)).get("text") or "")
            elif (found := _STEP.match(step)) is not None:
                kind, answer = found["kind"], int(found["answer"])
                number = answer + 1 if kind == "message" else answer  # a reply to the answer before
                place = int(found["phase"]), number
                part = "" if kind == "budget" else found["part"]  # only the last note before an answer was told
                records.setdefault(place, {})[kind, part] = _Record(kind, part, payload)
    prices = [usage["usd"] for usage in usages if isinstance(usage.get("usd"), (int, float))]
    tokens = sum(_count(usage, "tokens") for usage in usages)
    kept = {place: [*each.values()] for place, each in records.items() if any(kind != "budget" for kind, _ in each)}
    return StoredConversation(blobs, kept, given, tokens, sum(prices) if prices else None)


def _add(seen: SeenAnswer, kind: str, part: str, result: Mapping[str, Any]) -> None:
    """Add what one step recorded."""
    if kind == "llm":
        usage = _map(result.get("usage"))
        seen.text, seen.model = _text(result, "text"), _text(result, "model") or _text(result, "maker")
        seen.thinking = _thoughts(result.get("content"))
        seen.tokens += sum(_count(usage, name) for name in _TOKENS)
        usd = result.get("usd")
        seen.usd = (seen.usd or 0.0) + usd if isinstance(usd, (int, float)) else seen.usd
        calls = result.get("calls")
        given = [_map(call) for call in cast("list[Any]", calls)] if isinstance(calls, list) else []
        seen.calls = [SeenCall(str(call.get("name")), _map(call.get("input"))) for call in given]
    elif kind in ("steering", "message", "budget"):
        seen.heard = "\n\n".join(text for text in (seen.heard, _text(result, "text")) if text)
    elif part and 0 < int(part) <= len(seen.calls):
        call = seen.calls[int(part) - 1]
        if kind == "denied":
            call.denied = _text(result, "reason")
        elif kind == "ask":
            call.output = _text(result, "answer")
        elif not call.output or kind == "act":
            call.output = "\n".join(text for name in ("text", "errors") if (text := _text(result, name)))


_TOKENS = ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens")


async def _result_of(blobs: Blobs, payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the result of a step, which may be in a file; of one that is gone, nothing."""
    if "result_uri" not in payload:
        return _map(payload.get("result"))
    uri = str(payload["result_uri"])
    try:
        if await blobs.size(uri) > MAX_RESULT_BYTES:
            return {"text": "(this result is too large to be shown)"}
        return _map(json.loads(await blobs.get(uri)))
    except (StoreError, NotFound, InvalidInput, ValueError, RecursionError) as error:
        logger.warning("the result of a step cannot be read: %s", error)
        return {}


def _thoughts(content: Any) -> str:
    """Return the texts of the thoughts among the blocks of an answer, in the form of any provider."""
    blocks = [_map(block) for block in cast("list[Any]", content)] if isinstance(content, list) else []
    marked = [block for block in blocks if block.get("type") == "thinking" or block.get("thought") is True]
    names = ("thinking", "text", "summary") if marked else ("reasoning_content", "reasoning")
    texts = [next((text for name in names if (text := _text(block, name))), "") for block in marked or blocks]
    return "\n\n".join(text for text in texts if text)


def _text(result: Mapping[str, Any], name: str) -> str:
    return str(result.get(name) or "")


def _map(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _count(usage: Mapping[str, Any], name: str) -> int:
    value = usage.get(name)
    return value if isinstance(value, int) else 0
