"""What the model is told of its budget: all of it when it plans, and what is nearly used up.

A note is a recorded step, so that a resumed run gives the model the same text at the same place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fireswarm.contracts.llm.step_names import answer_step
from fireswarm.contracts.ports import Recorder
from fireswarm.llm.asking import Asking
from fireswarm.mind.assignment import Assignment

LITTLE = 0.25
"""Share of a budget below which the model is told, once for each scope."""

TIME = "time"


@dataclass(slots=True)
class BudgetNotes:
    """The notes about the budgets of one run; ``told`` are the scopes that ran low."""

    assignment: Assignment
    recorder: Recorder
    asking: Asking
    told: set[str] = field(default_factory=set[str])

    async def before(self, decision: int) -> str:
        """Return the note before the answer of *decision*, or "".

        A run that resumes tells the same note, unless nobody answered it and a budget or the deadline has changed.
        """
        earlier = 0
        while self.recorder.has_begun(_step(decision, earlier)):
            earlier += 1
        asked = self.recorder.has_begun(answer_step(decision))
        if earlier:
            note = await self._tell(_step(decision, earlier - 1), {})
            if asked or note.get("of") in (None, (due := await self._due(decision))["of"]):
                return self._heard(note)
        elif asked or not (due := await self._due(decision))["text"]:
            return ""
        return self._heard(await self._tell(_step(decision, earlier), due))

    async def _tell(self, step: str, due: dict[str, Any]) -> dict[str, Any]:
        async def tell() -> dict[str, Any]:
            return due

        return await self.recorder.step(step, tell, idempotent=True)

    def _heard(self, note: dict[str, Any]) -> str:
        self.told.update(note["low"])
        return str(note["text"])

    async def _due(self, decision: int) -> dict[str, Any]:
        """Return the note that is due, the scopes that run low, and the budgets that it is about."""
        client = self.asking.client
        limits = await client.meter.limits(self.asking.spent, client.ledger)
        left = {limit.scope: (limit.left, str(limit)) for limit in limits}
        left |= self._time_left()
        budgets = [f"{limit.scope} {limit.tokens} {limit.usd}" for limit in limits]
        note = {"text": "", "low": list[str](), "of": "; ".join([*budgets, str(self.assignment.deadline)])}
        low = [scope for scope, (share, _) in left.items() if share < LITTLE and scope not in self.told]
        if low:
            amounts = "; ".join(left[scope][1] for scope in low)
            text = f"[Less than a quarter of the budget is left: {amounts}. Do the most important part, and finish.]"
            return note | {"text": text, "low": low}
        if decision == 1 and left and self.assignment.roles:
            amounts = "; ".join(text for _, text in left.values())
            return note | {"text": f"# Budget left\n{amounts}."}
        return note

    def _time_left(self) -> dict[str, tuple[float, str]]:
        """Return the share and the length of the time left until the deadline, if there is one."""
        began, end = self.assignment.began_at, self.assignment.deadline
        if began is None or end is None or end <= began:
            return {}
        left = max(0.0, (end - self.asking.client.clock.now()).total_seconds())
        text = f"{left / 60:,.0f} min" if left >= 120 else f"{left:.0f} s"
        return {TIME: (left / (end - began).total_seconds(), f"{text} until the deadline")}


def _step(decision: int, earlier: int) -> str:
    """Return the name of the step with the note of a decision; *earlier* notes of it were never answered."""
    return f"budget:{decision}.{earlier}" if earlier else f"budget:{decision}"
