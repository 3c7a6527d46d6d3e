"""The model's loop: disclose skills, ask for a decision, act, check progress.

A role of the swarm and the stand-alone ``agent`` share this code; they differ in where a run is
recorded and in how a skill's results are used.
"""

from fireswarm.contracts.skills.tool import Tool
from fireswarm.mind.assignment import Assignment, Conclusion, ConclusionStatus, Steering
from fireswarm.mind.mind import Mind
from fireswarm.mind.start import think

__all__ = ["Assignment", "Conclusion", "ConclusionStatus", "Mind", "Steering", "Tool", "think"]
