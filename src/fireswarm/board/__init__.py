"""The board: every transition of a task, each one atomic commit fenced by the lease's epoch.

``submit -> claim -> renew* -> settle``, and ``sweep``, ``cancel``, ``answer``, ``retry`` around it.
"""

from fireswarm.board.board import Board
from fireswarm.board.lease import HeldLease
from fireswarm.board.rules import BoardRules

__all__ = ["Board", "BoardRules", "HeldLease"]
