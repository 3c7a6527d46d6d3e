"""The command: python3 -m timesheet FILE"""

import argparse
import sys
from pathlib import Path

from timesheet.entries import parse
from timesheet.weeks import by_week


def clock(minutes: int) -> str:
    """Format minutes as hours and minutes."""
    return f"{minutes // 60}:{minutes % 60:02}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="timesheet", description="Print the hours of each week.")
    parser.add_argument("file", type=Path)
    given = parser.parse_args(arguments)
    try:
        entries = parse(given.file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    weeks = by_week(entries)
    for week in sorted(weeks):
        print(week, clock(weeks[week]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
