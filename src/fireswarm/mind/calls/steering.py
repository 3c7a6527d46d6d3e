"""User messages sent during a run; delivered before the next call of the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fireswarm.contracts.llm.decision import StepStatus
from fireswarm.contracts.ports import Recorder
from fireswarm.mind.assignment import Steering
from fireswarm.mind.calls.results import CallResult, Step
from fireswarm.mind.calls.texts import UNANSWERED

LEFT = "Not executed: the run was stopped before this action. The next message says how to continue."
"""Output of an action that was open when the run was stopped, if a message followed."""


@dataclass(frozen=True, slots=True)
class SteeredSteps:
    """The steps of a run that a person's messages add or skip.

    They are recorded, so that a resumed run repeats them.
    """

    steering: Steering
    recorder: Recorder

    async def said_before(self, decision: int) -> str:
        """Return the message to the model before the answer of *decision*, or ""."""
        step = f"steering:{decision}"
        if not self.recorder.has_begun(step):
            asked = self.recorder.has_begun(f"llm:{decision}.0") or self.recorder.has_begun(
                f"message:{decision}.{UNANSWERED}"
            )
            if asked or not self.steering.look():
                return ""

        async def hear() -> dict[str, Any]:
            return {"text": self.steering.take()}

        return str((await self.recorder.step(step, hear, idempotent=True))["text"])

    @property
    def leaves_out(self) -> bool:
        """True if the run was stopped and a message says how to continue."""
        return self.steering.stopped and bool(self.steering.text)

    async def leave_out(self, step: Step) -> CallResult | None:
        """Return the result of a call that is skipped because the run was stopped before the call ended, or None."""
        if "left" not in step.begun and (step.begun or not self.leaves_out):
            return None

        async def leave() -> dict[str, Any]:
            return CallResult(text=LEFT, status=StepStatus.INTERRUPTED, acted=True, changes=True).record()

        return CallResult.model_validate(await self.recorder.step(f"left:{step.name}", leave, idempotent=True))
