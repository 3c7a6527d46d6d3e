"""Overtime as docs/overtime.md says, also in the week of New Year."""

import unittest
from datetime import date, timedelta

from tests.test_timesheet import run
from timesheet.weeks import week_of


def week(monday: str, *hours: str) -> str:
    first = date.fromisoformat(monday)
    return "".join(f"{first + timedelta(days=n)} 0:00-{end}\n" for n, end in enumerate(hours))


class TestOvertime(unittest.TestCase):
    def test_example_of_the_document(self):
        text = week("2025-03-03", "8:15", "8:15", "8:15", "8:15", "8:15") + week("2025-03-17", "8:00", "9:00", "9:00", "9:00", "9:00")
        text += week("2025-03-10", "8:00", "8:00", "8:00")
        self.assertEqual(run(text, "--overtime"), (0, "2025-W10 3:15 -> 4:04\n2025-W12 6:00 -> 7:45\ntotal 9:15 -> 11:49\n"))

    def test_credit_is_rounded_half_a_minute_up(self):
        for minutes, credited in ((2, "0:03"), (6, "0:08"), (1, "0:01"), (302, "6:18"), (301, "6:17")):
            text = week("2025-03-03", "20:00", "18:00", f"{minutes // 60}:{minutes % 60:02}")
            self.assertIn(f"-> {credited}\ntotal", run(text, "--overtime")[1], minutes)

    def test_other_norm_and_no_overtime(self):
        text = week("2025-03-03", "20:00", "19:00")
        self.assertEqual(run(text, "--overtime", "--norm", "38.5"), (0, "2025-W10 0:30 -> 0:38\ntotal 0:30 -> 0:38\n"))
        self.assertEqual(run(text, "--overtime", "--norm", "40"), (0, "total 0:00 -> 0:00\n"))
        self.assertEqual(run(text), (0, "2025-W10 39:00\n"))


class TestNewYear(unittest.TestCase):
    def test_week_of_new_year_is_one_week(self):
        text = week("2024-12-30", "9:00", "9:00", "9:00", "9:00", "9:00") + week("2024-01-01", "8:00", "8:00")
        self.assertEqual(run(text, "--overtime"), (0, "2025-W01 7:00 -> 9:15\ntotal 7:00 -> 9:15\n"))
        self.assertEqual(week_of(date(2027, 1, 1)), "2026-W53")


if __name__ == "__main__":
    unittest.main()
