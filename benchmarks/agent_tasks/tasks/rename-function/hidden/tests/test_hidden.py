import re
import unittest
from pathlib import Path

import shop
import shop.cart
import shop.export
import shop.invoice
import shop.totals

LINES = [("cup", 2, 7_50, 300), ("pot", 1, 29_00, 900)]


class HiddenTest(unittest.TestCase):
    def test_new_name(self):
        self.assertEqual(shop.order_total(LINES, shipping=1), 44_01)
        self.assertIs(shop.totals.order_total, shop.order_total)
        self.assertIn("order_total", shop.__all__)

    def test_old_name_is_gone(self):
        for module in (shop, shop.totals, shop.cart, shop.invoice, shop.export):
            self.assertFalse(hasattr(module, "calc_total"), module)
        for path in [*Path("shop").glob("*.py"), *Path("tests").glob("test_shop.py")]:
            self.assertIsNone(re.search(r"\bcalc_total\b", path.read_text()), path)

    def test_similar_names_stay(self):
        self.assertEqual(shop.calc_total_weight(LINES), 1_500)
        self.assertIn("calc_total_weight", shop.__all__)
        self.assertIn("recalc_totals", Path("shop/export.py").read_text())

    def test_results_are_as_before(self):
        self.assertEqual(shop.invoice.invoice(LINES), "4400 cents for 1500 grams")
        self.assertEqual(shop.export.row(1, LINES), {"number": 1, "net": 44_00, "grams": 1_500})


if __name__ == "__main__":
    unittest.main()
