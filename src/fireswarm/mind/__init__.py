"""The model's loop: prepare, then ask, execute and deliver until the run ends.

A role of the swarm and the stand-alone ``agent`` share this code; they differ in where a run is
recorded and in how a skill's results are used.
"""

from fireswarm.contracts.skills.tool import Tool
from fireswarm.mind.assignment import Assignment, Conclusion, ConclusionStatus, Steering
from fireswarm.mind.mind import Mind
from fireswarm.mind.run import think

__all__ = ["Assignment", "Conclusion", "ConclusionStatus", "Mind", "Steering", "Tool", "think"]
