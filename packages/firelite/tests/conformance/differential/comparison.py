"""Run a case on two servers and report the first difference."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from google.protobuf import text_format

from conformance.differential.answers import Answer, describe
from conformance.differential.backend import Backend
from conformance.differential.explanations import explain
from conformance.differential.shrink import shrink
from conformance.differential.steps import Step
from conformance.differential.values import PROJECT, ROOT

READS = frozenset({"RunQuery", "RunAggregationQuery", "BatchGetDocuments", "ListDocuments", "ListCollectionIds"})
LOCKING = frozenset({"victim_of_a_deadlock", "lock_timeout", "order_of_waiting_writes", "range_locks_of_queries"})
"""After one of these quirks the two servers hold different documents."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Two different answers to one step, and the quirk that explains them, if one does."""

    position: int
    rpc: str
    codes: tuple[str, str]
    ours: str
    theirs: str
    quirk: str | None


@dataclass(slots=True)
class Comparison:
    """Two servers, and statistics of what they answered."""

    ours: Backend
    theirs: Backend
    answers: Counter[str] = field(default_factory=Counter[str])
    quirks: Counter[str] = field(default_factory=Counter[str])
    _run: str = field(default_factory=lambda: uuid.uuid4().hex[:6])
    _serials: itertools.count[int] = field(default_factory=itertools.count)

    async def first_difference(self, steps: Sequence[Step]) -> Difference | None:
        """Run the steps on both servers. Return the first difference without an explanation, or None."""
        for difference in await self._differences(steps):
            if difference.quirk is None:
                return difference
            self.quirks[difference.quirk] += 1
            if difference.rpc not in READS or difference.quirk in LOCKING:
                return None  # from here on the documents may differ
        return None

    async def report(self, steps: Sequence[Step], difference: Difference) -> str:
        """Return the smallest steps found that show the difference, with both answers."""

        async def fails(candidate: Sequence[Step]) -> bool:
            other = await self.first_difference(candidate)
            return other is not None and (other.rpc, other.codes) == (difference.rpc, difference.codes)

        smallest = await shrink(steps[: difference.position + 1], fails)
        last = await self.first_difference(smallest) or difference
        lines = [f"{step.actor or '-'} {step.rpc} {_shorten(step)}" for step in smallest]
        return "\n".join([*lines, f"step {last.position}", f"firelite: {last.ours}", f"emulator: {last.theirs}"])

    async def _differences(self, steps: Sequence[Step]) -> list[Difference]:
        width = len(PROJECT) - len("differential-") - len(self._run)
        project = f"differential-{self._run}{next(self._serials):0{width}d}"
        ours, theirs = await asyncio.gather(self.ours.run(steps, project), self.theirs.run(steps, project))
        self.answers.update(answer.code for answer in theirs)
        texts = zip(describe(steps, ours), describe(steps, theirs), strict=True)
        return [
            Difference(
                position,
                steps[position].rpc,
                (ours[position].code, theirs[position].code),
                _full(mine, ours[position]),
                _full(other, theirs[position]),
                explain(steps, position, ours, theirs),
            )
            for position, (mine, other) in enumerate(texts)
            if mine != other
        ]


def _full(text: str, answer: Answer) -> str:
    return f"{text} {answer.details}".replace(ROOT, "").strip()


def _shorten(step: Step) -> str:
    return text_format.MessageToString(step.request, as_one_line=True).replace(ROOT, "")
