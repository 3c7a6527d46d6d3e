import unittest

from bookings import free_days, merge


class BookingsTest(unittest.TestCase):
    def test_bookings_that_overlap_are_one(self):
        self.assertEqual(merge([(1, 4), (3, 6)]), [(1, 6)])

    def test_bookings_that_touch_are_one(self):
        self.assertEqual(merge([(4, 6), (1, 4)]), [(1, 6)])

    def test_others_stay(self):
        self.assertEqual(merge([(8, 9), (1, 3)]), [(1, 3), (8, 9)])

    def test_free_days(self):
        self.assertEqual(free_days([(2, 4), (5, 6)], 1, 7), [1, 4, 6, 7])


if __name__ == "__main__":
    unittest.main()
