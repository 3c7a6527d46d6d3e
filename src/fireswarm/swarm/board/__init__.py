"""The task board: every transition of a task, fenced by its lease.

``submit -> claim -> renew* -> settle``, and ``sweep``, ``cancel``, ``answer``, ``retry`` around it.
"""

from fireswarm.swarm.board.board import Board
from fireswarm.swarm.board.lease import HeldLease
from fireswarm.swarm.board.rules import BoardRules

__all__ = ["Board", "BoardRules", "HeldLease"]
