"""The skill-native agent: from a task and a catalog of skills to a conclusion, one decision after another.

A role of the swarm and the stand-alone ``agent`` are this same code; they differ in where a run is
written down and in what a skill's results become.
"""

from fireswarm.mind.assignment import Assignment, Conclusion, Ending, Tool
from fireswarm.mind.loop import think
from fireswarm.mind.mind import Mind

__all__ = ["Assignment", "Conclusion", "Ending", "Mind", "Tool", "think"]
