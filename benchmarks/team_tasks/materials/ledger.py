"""A ledger whose database is cut off, with the snapshot and the journal that it can be computed from."""

from __future__ import annotations

import csv
import json
import random
import sqlite3
from datetime import date, timedelta
from pathlib import Path

LEDGER_SEED = 20250930
ACCOUNTS = (
    *("1000 bank", "1200 receivables", "1400 stock", "1600 payables", "2000 equity", "3000 sales", "3100 repairs"),
    *("4000 materials", "4100 wages", "4200 rent", "4300 energy", "4900 other costs"),
)
OPENING = {
    "1000 bank": 7_210_050,
    "1200 receivables": 1_180_500,
    "1400 stock": 3_960_000,
    "1600 payables": -742_025,
    "2000 equity": -11_608_525,
}
"""Balances at the end of June, in cents."""

USUAL = (
    *(("1200 receivables", "3000 sales"), ("1200 receivables", "3100 repairs"), ("1000 bank", "1200 receivables")),
    *(("4000 materials", "1400 stock"), ("1400 stock", "1600 payables"), ("1600 payables", "1000 bank")),
    *(("4100 wages", "1000 bank"), ("4200 rent", "1000 bank"), ("4300 energy", "1600 payables")),
    *(("4900 other costs", "1000 bank"),),
)


def damaged_ledger(project: Path) -> None:
    """Write ``data/``: a ledger whose database is cut off, a snapshot of June, and the journal since then."""
    data = project / "data"
    entries = _entries(random.Random(LEDGER_SEED))
    _write_journal(data, entries)
    with (data / "backup" / "balances-2025-06-30.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["account", "balance"])
        writer.writerows([account, f"{OPENING.get(account, 0) / 100:.2f}"] for account in ACCOUNTS)
    _write_database(data / "ledger.db", entries)


def _entries(source: random.Random) -> list[dict[str, object]]:
    """The entries of three months: bookings, cancellations of earlier ones, and some that were sent twice."""
    day, entries = date(2025, 7, 1), list[dict[str, object]]()
    number = 700
    while day <= date(2025, 10, 6):
        debit, credit = source.choice(USUAL)
        number += 1
        entry: dict[str, object] = {"id": f"T{number}", "date": str(day), "debit": debit, "credit": credit}
        entries.append({**entry, "amount": f"{source.randint(2_000, 250_000) / 100:.2f}"})
        if number % 23 == 0:
            voided = entries[-1 - source.randint(2, 6)]
            entries.append({"id": f"T{number}-V", "date": str(day), "void": str(voided["id"]).removesuffix("-V")})
        if number % 31 == 0:
            entries.append(dict(entries[-2]))
        day += timedelta(days=source.choice((0, 1, 1, 2)))
    return entries


def _write_journal(data: Path, entries: list[dict[str, object]]) -> None:
    for folder in ("journal", "backup"):
        (data / folder).mkdir(parents=True, exist_ok=True)
    for month in sorted({str(entry["date"])[:7] for entry in entries}):
        lines = [json.dumps(entry) for entry in entries if str(entry["date"]).startswith(month)]
        (data / "journal" / f"{month}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _write_database(path: Path, entries: list[dict[str, object]]) -> None:
    """Write the ledger as the exporter reads it, and cut the second half off, as a full disk does."""
    path.unlink(missing_ok=True)
    store = sqlite3.connect(path)
    store.execute("create table postings (id text, day text, account text, cents integer, voided integer default 0)")
    rows = [(account, cents, "opening") for account, cents in OPENING.items()]
    for entry in entries:
        if "void" not in entry:
            cents = round(float(str(entry["amount"])) * 100)
            rows += [(str(entry["debit"]), cents, str(entry["id"])), (str(entry["credit"]), -cents, str(entry["id"]))]
    store.executemany("insert into postings (account, cents, id) values (?, ?, ?)", rows)
    store.commit()
    store.close()
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
