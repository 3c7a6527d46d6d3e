"""Entries are read, and put together by week."""

import contextlib
import io
import tempfile
import unittest
from datetime import date
from pathlib import Path

from timesheet.__main__ import main
from timesheet.entries import Entry, parse
from timesheet.weeks import by_week, week_of


def run(text, *options):
    """Run the command on a timesheet, and return its exit code and what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sheet.txt"
        path.write_text(text)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            code = main([str(path), *options])
    return code, printed.getvalue()


class TestEntries(unittest.TestCase):
    def test_pause_is_taken_off(self):
        self.assertEqual(parse("2025-03-03 09:00-17:30 pause 30 release"), [Entry(date(2025, 3, 3), 480, "release")])

    def test_odd_lines_are_refused_with_their_number(self):
        for line in ("yesterday 9:00-10:00", "2025-03-03 10:00-9:00", "2025-03-03 9:00-25:00"):
            with self.assertRaises(ValueError):
                parse(f"\n{line}")


class TestWeeks(unittest.TestCase):
    def test_week_begins_on_monday(self):
        self.assertEqual([week_of(date(2025, 3, day)) for day in (2, 3, 9, 10)], ["2025-W09", "2025-W10", "2025-W10", "2025-W11"])

    def test_minutes_are_summed_by_week(self):
        entries = [Entry(date(2025, 3, 3), 60), Entry(date(2025, 3, 9), 30), Entry(date(2025, 3, 10), 15)]
        self.assertEqual(by_week(entries), {"2025-W10": 90, "2025-W11": 15})

    def test_command_prints_hours(self):
        self.assertEqual(run("2025-03-03 9:00-12:15\n"), (0, "2025-W10 3:15\n"))


if __name__ == "__main__":
    unittest.main()
