"""The task board: all state changes of a task, fenced by the epoch of its lease.

The usual path is ``submit -> claim -> renew* -> settle``. ``sweep``, ``cancel``, ``answer`` and ``retry`` change tasks
outside of this path.
"""

from fireswarm.contracts.swarm.lease import HeldLease
from fireswarm.swarm.board.board import Board
from fireswarm.swarm.board.rules import BoardRules

__all__ = ["Board", "BoardRules", "HeldLease"]
