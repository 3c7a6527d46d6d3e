import unittest

from units import convert


class UnitsTest(unittest.TestCase):
    def test_metric(self):
        self.assertEqual(convert(2.5, "km", "m"), 2_500)

    def test_imperial(self):
        self.assertAlmostEqual(convert(3, "ft", "yd"), 1)
        self.assertAlmostEqual(convert(12, "in", "ft"), 1)

    def test_negative_lengths_are_refused(self):
        with self.assertRaises(ValueError):
            convert(-1, "m", "km")


if __name__ == "__main__":
    unittest.main()
