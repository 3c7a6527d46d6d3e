"""The steps of a run: a finished one is not executed again, even after a crash.

A step is stored by its name and its inputs. Sinks store steps: on pages of a run document for a task of a swarm, in a
file for the stand-alone agent.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fireswarm.contracts.llm.step_names import answer_step
from fireswarm.contracts.ports import StepSink
from fireswarm.contracts.swarm.task import StepDecision, canonical_json

STEP_STARTED, STEP_FINISHED, STEP_FAILED, STEP_REPLAYED, STEP_REDONE, STEP_SKIPPED = (
    "step_started",
    "step_finished",
    "step_failed",
    "step_replayed",
    "step_redone",
    "step_skipped",
)

CALL_RECORDS = ("act", "ask", "denied", "left")
"""Kinds of records that one call of a model may leave: executed, asked, denied, or left out."""

_HASH = re.compile(r":[0-9a-f]{16}$")
_FIRST_OF_ANSWER = re.compile(r"0/(?:steering|budget|count|summary|llm):(\d{1,9})(?!\d)")
_ANSWER = re.compile(r"0/llm:(\d{1,9})\.0:")
_ANY_ANSWER = re.compile(r"\d{1,9}/llm:\d")
_LATER_PHASE = re.compile(r"planned:|[1-9]\d*/")


def step_id(name: str, inputs: Any) -> str:
    """Return the id of a step, its name and a hash of its inputs: changed inputs make another step."""
    return f"{name}:{hashlib.sha256(canonical_json(inputs).encode()).hexdigest()[:16]}"


def step_name(step: str) -> str:
    """Return the name in the id of a step."""
    return _HASH.sub("", step)


def is_before(step: str, answer: int) -> bool:
    """Return False for a step that only comes with the model's answer of this number in its first phase, or later."""
    first = _FIRST_OF_ANSWER.match(step)
    return not _LATER_PHASE.match(step) and (first is None or int(first[1]) < answer)


def number_of_answer(step: str) -> int:
    """Return which answer of the model in its first phase a step holds; 0 for any other step."""
    found = _ANSWER.match(step)
    return int(found[1]) if found else 0


def is_answer(step: str) -> bool:
    """Return True for a step that holds an answer of the model, in any phase."""
    return _ANY_ANSWER.match(step) is not None


def fork_limits(forks: Sequence[int | None]) -> list[int]:
    """Return for each task of a line of forks before which answer it counts; 0 is no limit.

    *forks* are, for each task of the line, the answer before which the following one was forked from it, or None.
    """
    return [min(filter(None, forks[place:]), default=0) for place in range(len(forks))]


@dataclass(slots=True)
class KnownSteps:
    """Steps of earlier starts of a run: finished ones with their stored results, and those in doubt."""

    finished: dict[str, Any] = field(default_factory=dict[str, Any])
    in_doubt: set[str] = field(default_factory=set[str])
    redone: set[str] = field(default_factory=set[str])
    skipped: set[str] = field(default_factory=set[str])

    def learn(self, kind: str, step: str, kept: Any = None) -> None:
        """Add one record, in order."""
        match kind:
            case "step_started":
                self.in_doubt.add(step)
            case "step_finished":
                self.in_doubt.discard(step)
                self.finished[step] = kept
            case "step_failed":
                self.in_doubt.discard(step)
            case "step_skipped":
                self.in_doubt.discard(step)
                self.skipped.add(step)
            case _:
                pass

    def has_begun(self, step: str) -> bool:
        """Return True for a step that is not executed again."""
        return step in self.finished or step in self.in_doubt or step in self.skipped

    def decide(self, decisions: Mapping[str, StepDecision]) -> None:
        """Apply an operator's decisions, by step name, to the steps learned so far."""
        for step in {*self.finished, *self.in_doubt}:
            decision = decisions.get(step_name(step))
            if decision is StepDecision.REDO:
                self.finished.pop(step, None)
                self.in_doubt.discard(step)
                self.redone.add(step)
            elif decision is StepDecision.SKIP and step in self.in_doubt:
                self.in_doubt.discard(step)
                self.skipped.add(step)


def find_lost_answers(known: KnownSteps, before: int) -> int:
    """Return the first of the model's answers that is not known, though *before* or a known one comes after it, or 0.

    With a gap, a model would be asked for the lost answer anew, and then be told of later answers to another one.
    """
    last = max((number_of_answer(step) for step in known.finished), default=0)
    numbers = range(1, max(before, last))
    return next((n for n in numbers if not known.has_begun(step_id(f"0/{answer_step(n)}", None))), 0)


@dataclass(slots=True)
class StepLog:
    """Executes steps once. ``known`` are the steps of earlier starts, ``sink`` stores the new ones."""

    sink: StepSink
    known: KnownSteps = field(default_factory=KnownSteps)

    def has_begun(self, name: str, inputs: Any = None) -> bool:
        """Return True for a step that an earlier start has finished, or may have executed."""
        return self.known.has_begun(step_id(name, inputs))

    def earlier_kinds(self, call: str, prefix: str = "") -> frozenset[str]:
        """Return the kinds of records that an earlier start wrote for a call of a model."""
        if not (self.known.finished or self.known.in_doubt or self.known.skipped):
            return frozenset()
        return frozenset(kind for kind in CALL_RECORDS if self.has_begun(f"{prefix}{kind}:{call}"))

    async def step(
        self,
        name: str,
        inputs: Any,
        run: Callable[[], Awaitable[Any]],
        *,
        idempotent: bool,
        last: bool = False,
        skipped: Any = None,
    ) -> Any:
        """Execute a step once, even after a crash: a finished step returns its stored result.

        *inputs* and the result are JSON. A step that is not idempotent is recorded as started before it runs; if an
        earlier start did not finish it, the sink decides. With *last*, the commit that ends the run stores the result
        of an idempotent step. *skipped* is the result if an operator treats the step as done.
        """
        step, known, sink = step_id(name, inputs), self.known, self.sink
        if step in known.skipped:
            sink.note_step(STEP_SKIPPED, step, by="operator")
            return skipped
        if step in known.redone:
            sink.note_step(STEP_REDONE, step, by="operator")
        if step in known.finished:
            sink.note_step(STEP_REPLAYED, step)
            return await sink.load_result(known.finished[step])
        if step in known.in_doubt:  # started as a step that must not be repeated, whatever *idempotent* is now
            return await sink.doubt(step, skipped)
        if not idempotent:
            await sink.begin_step(step)
        if not sink.may_start:
            await sink.renew()
        try:
            result = await run()
        except Exception as error:  # recorded and raised again, so that the step does not count as unfinished
            sink.fail_step(step, error)
            raise
        return await sink.finish_step(step, result, last=last and idempotent)
