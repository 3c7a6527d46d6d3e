"""What each module tells, and with which values, when its things are refused, limited and closed."""

import csv
import importlib
import subprocess
import sys
import unittest
from pathlib import Path

from shop import events, oldlog

ROOT = Path(__file__).resolve().parent
WANTED: dict[str, dict[str, tuple[str, str, set[str]]]] = {}
for row in csv.DictReader((ROOT / "docs" / "events.csv").open()):
    told = (row["level"], row["event"], set(row["fields"].split()))
    WANTED.setdefault(row["module"], {})[row["function"].partition("_")[0]] = told


class TestEvents(unittest.TestCase):
    def test_all_modules_tell_their_events(self):
        self.assertEqual(len(WANTED), 40)
        for path, wanted in WANTED.items():
            with self.subTest(path):
                noun = Path(path).stem
                module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
                make, opened, close = (getattr(module, f"{verb}_{noun}") for verb in ("make", "open", "close"))
                events.told.clear()
                make("n", "ann", -2)
                for number in range(module.MOST_OPEN + 1):
                    make(f"n{number}", "bob", 7)
                    opened(f"n{number}")
                module._known["n0"].age_days = 4
                close("n0", "sent")
                values = [
                    {"number": "n", "owner": "ann"},
                    {"number": f"n{module.MOST_OPEN}", "owner": "bob", "open": module.MOST_OPEN},
                    {"number": "n0", "reason": "sent", "age_days": 4},
                ]
                for (level, event, fields), (verb, known) in zip(events.told, zip(("make", "open", "close"), values), strict=True):
                    self.assertEqual((level, event, set(fields)), wanted[verb])
                    others = set(fields) - set(known)
                    self.assertEqual({name: fields[name] for name in known}, known)
                    self.assertEqual([fields[name] for name in others], [-2] * len(others))
        self.assertEqual(oldlog.lines, [])

    def test_no_module_imports_the_old_log(self):
        for path in WANTED:
            self.assertNotIn("oldlog", (ROOT / path).read_text(), path)

    def test_the_check_of_the_project_agrees(self):
        ended = subprocess.run([sys.executable, "tools/check_events.py"], cwd=ROOT, capture_output=True, text=True)
        self.assertEqual(ended.stdout.strip(), "40 modules are as the catalogue says")


if __name__ == "__main__":
    unittest.main()
