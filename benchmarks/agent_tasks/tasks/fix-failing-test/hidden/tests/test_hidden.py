import unittest

from hours import is_open


class HiddenTest(unittest.TestCase):
    def test_night_belongs_to_the_day_before_only(self):
        self.assertFalse(is_open("Sa 22:00-02:00", "Sa", "01:00"))
        self.assertFalse(is_open("Sa 22:00-02:00", "Su", "22:30"))
        self.assertTrue(is_open("Sa 22:00-02:00", "Su", "00:00"))

    def test_night_from_sunday_to_monday(self):
        self.assertTrue(is_open("Su 20:00-04:00", "Mo", "03:59"))
        self.assertFalse(is_open("Su 20:00-04:00", "Mo", "04:00"))
        self.assertFalse(is_open("Su 20:00-04:00", "Tu", "03:00"))

    def test_day_hours_are_as_before(self):
        self.assertTrue(is_open("Mo-Su 00:00-24:00", "We", "12:00"))
        self.assertTrue(is_open("Mo 09:00-12:00; Mo 14:00-18:00", "Mo", "14:00"))
        self.assertFalse(is_open("Mo 09:00-12:00; Mo 14:00-18:00", "Mo", "13:00"))
        self.assertFalse(is_open("Mo 09:00-12:00", "Tu", "08:00"))


if __name__ == "__main__":
    unittest.main()
