"""Read the conversation of a task from its runs: what its model answered, called and was told, as it is stored."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from fireswarm.contracts.ports import Blobs, Store
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import StoreError
from fireswarm.runs.sinks.run_reader import read_events
from fireswarm.runs.steps import STEP_FINISHED, step_name
from fireswarm.storage.documents.paths import run_path

MAX_RUNS = 50
"""Maximum number of runs of a task that are read, the newest."""

_STEP = re.compile(r"(?P<phase>\d+)/(?P<kind>llm|act|denied|steering|message):(?P<answer>\d+)\.?(?P<part>\d*)$")

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

    ``phase`` is the number of plans that were made before it, ``number`` counts the answers of the phase from 1.
    """

    phase: int
    number: int
    text: str = ""
    model: str = ""
    tokens: int = 0
    usd: float | None = None
    heard: str = ""
    calls: list[SeenCall] = field(default_factory=list[SeenCall])


async def read_conversation(store: Store, blobs: Blobs, task: Task) -> list[SeenAnswer]:
    """Return the answers of a task's model in order, without those of the task that it goes on with.

    A step that was executed again counts as it was last. Raises StoreError.
    """
    numbers = range(max(1, task.epoch + 1 - MAX_RUNS), task.epoch + 1)
    answers: dict[tuple[int, int], SeenAnswer] = {}
    for run in await store.get_many([run_path(task.run_id(number)) for number in numbers]):
        for event in await read_events(store, run) if run.data is not None else ():
            payload = _map(event.get("payload"))
            found = _STEP.match(step_name(str(payload.get("step"))))
            if found is None or event.get("type") != STEP_FINISHED:
                continue
            result = await _result_of(blobs, payload)
            kind, answer = found["kind"], int(found["answer"])
            number = answer + 1 if kind == "message" else answer  # a reply to the answer before
            seen = answers.setdefault((int(found["phase"]), number), SeenAnswer(int(found["phase"]), number))
            _add(seen, kind, found["part"], result)
    return [answers[place] for place in sorted(answers)]


def _add(seen: SeenAnswer, kind: str, part: str, result: Mapping[str, Any]) -> None:
    """Add what one step recorded."""
    if kind == "llm":
        usage = _map(result.get("usage"))
        seen.text, seen.model = str(result.get("text") or ""), str(result.get("model") or result.get("maker") or "")
        seen.tokens += sum(_count(usage, name) for name in _TOKENS)
        usd = result.get("usd")
        seen.usd = (seen.usd or 0.0) + usd if isinstance(usd, (int, float)) else seen.usd
        calls = result.get("calls")
        given = [_map(call) for call in cast("list[Any]", calls)] if isinstance(calls, list) else []
        seen.calls = [SeenCall(str(call.get("name")), _map(call.get("input"))) for call in given]
    elif kind in ("steering", "message"):
        seen.heard = str(result.get("text") or "")
    elif part and 0 < int(part) <= len(seen.calls):
        call = seen.calls[int(part) - 1]
        if kind == "denied":
            call.denied = str(result.get("reason") or "")
        else:
            call.output = "\n".join(text for name in ("text", "errors") if (text := str(result.get(name) or "")))


_TOKENS = ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens")


async def _result_of(blobs: Blobs, payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the result of a step, which may be in a file; of one that is gone, nothing."""
    if "result_uri" not in payload:
        return _map(payload.get("result"))
    try:
        return _map(json.loads(await blobs.get(str(payload["result_uri"]))))
    except (StoreError, ValueError) as error:
        logger.warning("the result of a step cannot be read: %s", error)
        return {}


def _map(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _count(usage: Mapping[str, Any], name: str) -> int:
    value = usage.get(name)
    return value if isinstance(value, int) else 0
