"""The model's loop: disclose skills, ask for a decision, act, check progress.

A role of the swarm and the stand-alone ``agent`` are this same code; they differ in where a run is
written down and in what a skill's results become.
"""

from fireswarm.contracts.skills.tool import Tool
from fireswarm.mind.assignment import Assignment, Conclusion, ConclusionStatus
from fireswarm.mind.loop import think
from fireswarm.mind.mind import Mind

__all__ = ["Assignment", "Conclusion", "ConclusionStatus", "Mind", "Tool", "think"]
