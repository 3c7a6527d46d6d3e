"""Split rows into training, calibration and held-out parts, seeded by the table's content."""

from __future__ import annotations

import hashlib
import random
from collections import defaultdict
from dataclasses import dataclass

from .table import Table

CALIBRATION_SHARE, HELD_OUT_SHARE = 0.25, 0.25


@dataclass(frozen=True)
class Split:
    """Positions of labelled rows: ``train`` for learning, ``calibrate`` for interval widths, ``held_out`` for tests."""

    train: list[int]
    calibrate: list[int]
    held_out: list[int]


def seed_of(table: Table, target: str) -> int:
    """Return a seed from the table's content and the target's name."""
    digest = hashlib.sha256(repr((table.header, table.rows, target)).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:4], "big")


def split_rows(answers: list[float] | list[str], seed: int) -> Split:
    """Shuffle and split; each class is split separately, so that every part has its share of each class."""
    generator = random.Random(seed)
    groups: dict[str, list[int]] = defaultdict(list)
    for position, answer in enumerate(answers):
        groups[answer if isinstance(answer, str) else ""].append(position)
    train: list[int] = []
    calibrate: list[int] = []
    held_out: list[int] = []
    for key in sorted(groups):
        members = groups[key]
        generator.shuffle(members)
        first = round(len(members) * HELD_OUT_SHARE)
        second = first + round(len(members) * CALIBRATION_SHARE)
        held_out += members[:first]
        calibrate += members[first:second]
        train += members[second:]
    return Split(sorted(train), sorted(calibrate), sorted(held_out))
