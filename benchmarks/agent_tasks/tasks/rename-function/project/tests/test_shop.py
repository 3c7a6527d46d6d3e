import unittest
from unittest import mock

from shop import Cart, calc_total, calc_total_weight
from shop.export import row
from shop.invoice import invoice

LINES = [("cup", 2, 7_50, 300), ("pot", 1, 29_00, 900)]


class ShopTest(unittest.TestCase):
    def test_totals(self):
        self.assertEqual(calc_total(LINES), 44_00)
        self.assertEqual(calc_total_weight(LINES), 1_500)

    def test_shipping_is_added_to_a_small_cart(self):
        cart = Cart()
        cart.add("cup", 1, 7_50, 300)
        self.assertEqual(cart.total(), 12_40)

    def test_cart_asks_for_the_total(self):
        with mock.patch("shop.totals.calc_total", return_value=1) as calc_total:
            self.assertEqual(Cart().total(), 1)
        calc_total.assert_called_once()

    def test_invoice(self):
        self.assertEqual(invoice(LINES), "4400 cents for 1500 grams")

    def test_row(self):
        self.assertEqual(row(7, LINES), {"number": 7, "net": 44_00, "grams": 1_500})


if __name__ == "__main__":
    unittest.main()
