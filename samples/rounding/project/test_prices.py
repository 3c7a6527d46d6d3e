import unittest

from prices import gross, total


class PricesTest(unittest.TestCase):
    def test_whole_cents(self):
        self.assertEqual(gross(10.00), 11.90)

    def test_half_a_cent_is_rounded_up(self):
        self.assertEqual(gross(4.50), 5.36)  # 5.355

    def test_total(self):
        self.assertEqual(total([(2, 4.50), (1, 10.00)]), 22.62)


if __name__ == "__main__":
    unittest.main()
