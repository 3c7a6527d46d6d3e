"""Run a model on an assignment: by tool calls, or by decisions in JSON for a model without tools."""

from __future__ import annotations

from fireswarm.contracts.ports import Recorder
from fireswarm.mind.assignment import Assignment, Conclusion
from fireswarm.mind.calling.run import CallingRun
from fireswarm.mind.loop import MindRun
from fireswarm.mind.mind import Mind


async def think(mind: Mind, assignment: Assignment, recorder: Recorder) -> Conclusion:
    """Execute an assignment and return its conclusion. The last event is ``run_finished`` or ``run_failed``."""
    run = CallingRun if mind.calls_tools else MindRun
    return await run(mind, assignment, recorder).conclude()
