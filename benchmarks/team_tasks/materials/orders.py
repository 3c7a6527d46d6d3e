"""Orders of eighteen months by day and channel, with faults: corrected rows, a month in cents, missing days."""

from __future__ import annotations

import csv
import random
from datetime import date, timedelta
from pathlib import Path

SEED = 20260701
FIRST, LAST = date(2025, 1, 1), date(2026, 6, 30)
CHANNELS = {"shop": (42, 61.0, -0.02), "app": (18, 44.0, 0.11), "phone": (9, 118.0, -0.05)}
"""Orders a day at the beginning, amount of one in EUR, growth in a quarter."""

IN_CENTS = (2025, 7)
MISSING = (date(2026, 2, 10), date(2026, 2, 11), date(2026, 2, 12))

Row = tuple[str, str, int, float, str]
"""Day, channel, orders, amount, when it was exported."""


def right_rows() -> list[Row]:
    """Return the rows as they should be, the same ones each time."""
    source, rows, day = random.Random(SEED), list[Row](), FIRST
    while day <= LAST:
        quarters = (day - FIRST).days / 91.3
        for channel, (orders, value, growth) in CHANNELS.items():
            season = 1.35 if day.month in (11, 12) else 0.85 if day.month in (7, 8) else 1.0
            weekend = 0.6 if day.weekday() > 4 and channel == "phone" else 1.0
            count = max(1, round(orders * (1 + growth) ** quarters * season * weekend * source.uniform(0.8, 1.2)))
            amount = round(sum(value * source.uniform(0.5, 1.5) for _ in range(count)), 2)
            if day not in MISSING:
                rows.append((str(day), channel, count, amount, f"{day + timedelta(days=1)}T03:00"))
        day += timedelta(days=1)
    return rows


def daily_orders(project: Path) -> None:
    """Write ``data/orders.csv``, with the faults."""
    source, rows = random.Random(SEED + 1), list[Row]()
    for day, channel, count, amount, exported in right_rows():
        if channel == "app" and (int(day[:4]), int(day[5:7])) == IN_CENTS:
            amount = round(amount * 100)
        if source.random() < 0.02:  # exported too early, and again later
            rows.append((day, channel, max(0, count - 3), round(amount * 0.7, 2), exported.replace("03:00", "01:00")))
        rows.append((day, channel, count, amount, exported))
    rows.sort(key=lambda row: (row[0], row[1], source.random()))
    (project / "data").mkdir(exist_ok=True)
    with (project / "data" / "orders.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["day", "channel", "orders", "amount", "exported_at"])
        writer.writerows(rows)
