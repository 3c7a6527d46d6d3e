"""Parts of projects that are made when a run begins: they are too large to store, and the same ones each time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.team_tasks.materials.ledger import damaged_ledger
from benchmarks.team_tasks.materials.orders import daily_orders
from benchmarks.team_tasks.materials.shop import forty_modules
from benchmarks.team_tasks.materials.stations import twenty_stations

MATERIALS: dict[str, Callable[[Path], None]] = {
    "daily_orders": daily_orders,
    "damaged_ledger": damaged_ledger,
    "forty_modules": forty_modules,
    "twenty_stations": twenty_stations,
}
"""What the ``prepare`` of a task may name."""
