"""Each module makes, opens, changes and closes its things."""

import importlib
import unittest
from pathlib import Path

SHOP = Path(__file__).resolve().parents[1] / "shop"
MODULES = sorted(path for path in SHOP.glob("*/*.py") if path.stem != "__init__")


class TestModules(unittest.TestCase):
    def test_things_live_and_end(self):
        self.assertEqual(len(MODULES), 40)
        for path in MODULES:
            with self.subTest(path.stem):
                module = importlib.import_module(f"shop.{path.parent.name}.{path.stem}")
                make, opened, change, close = (getattr(module, f"{verb}_{path.stem}") for verb in ("make", "open", "change", "close"))
                self.assertIsNone(make("0", "ann", 0))
                for number in range(module.MOST_OPEN + 1):
                    self.assertIsNotNone(make(f"n{number}", "ann", 5))
                    self.assertEqual(opened(f"n{number}"), number < module.MOST_OPEN)
                self.assertEqual(change("n0", 8), 3)
                self.assertEqual(module.sum_open("ann"), 5 * module.MOST_OPEN + 3)
                self.assertTrue(close("n0", "sent"))
                self.assertFalse(close("n0", "sent"))
                self.assertEqual(module.drop_old(100), [f"n{module.MOST_OPEN}"])


if __name__ == "__main__":
    unittest.main()
