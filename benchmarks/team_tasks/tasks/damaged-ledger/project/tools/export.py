"""Write the balances of all accounts at the end of a day, as CSV on standard output."""

import argparse
import csv
import sqlite3
import sys
from pathlib import Path

LEDGER = Path(__file__).resolve().parents[1] / "data" / "ledger.db"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--until", required=True, help="the last day, such as 2025-09-30")
    until = parser.parse_args().until
    store = sqlite3.connect(f"file:{LEDGER}?mode=ro", uri=True)
    (state,) = store.execute("pragma quick_check").fetchone()
    if state != "ok":
        sys.exit(f"ledger.db is damaged, nothing is exported: {state}")
    rows = store.execute(
        "select account, sum(cents) from postings where voided = 0 and (day is null or day <= ?) group by account",
        (until,),
    )
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["account", "balance"])
    writer.writerows([account, f"{cents / 100:.2f}"] for account, cents in rows)


if __name__ == "__main__":
    main()
