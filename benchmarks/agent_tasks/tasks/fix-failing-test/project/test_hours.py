import unittest

from hours import is_open, parse_days

BAR = "Mo-Fr 08:00-18:00; Sa 22:00-02:00"


class HoursTest(unittest.TestCase):
    def test_days_of_a_range(self):
        self.assertEqual(parse_days("Mo-We"), [0, 1, 2])
        self.assertEqual(parse_days("Su-Mo"), [6, 0])

    def test_a_day_of_the_week(self):
        self.assertTrue(is_open(BAR, "Tu", "08:00"))
        self.assertFalse(is_open(BAR, "Tu", "18:00"))

    def test_before_midnight(self):
        self.assertTrue(is_open(BAR, "Sa", "23:30"))

    def test_after_midnight(self):
        self.assertTrue(is_open(BAR, "Su", "01:59"))
        self.assertFalse(is_open(BAR, "Su", "02:00"))


if __name__ == "__main__":
    unittest.main()
