import subprocess
import unittest
from pathlib import Path

from units import ALIASES, METRES, convert


def git(*arguments):
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout.strip()


class HiddenTest(unittest.TestCase):
    def test_miles_are_right_again(self):
        self.assertAlmostEqual(convert(26.2, "mi", "km"), 42.1648128, 6)
        self.assertAlmostEqual(convert(1, "mile", "km"), 1.609344, 6)

    def test_nothing_else_is_lost(self):
        self.assertEqual(len(METRES), 7)
        self.assertEqual(len(ALIASES), 7)
        self.assertAlmostEqual(convert(1, "yard", "inch"), 36)

    def test_repair_is_one_commit_on_top_of_main(self):
        self.assertEqual(git("symbolic-ref", "--short", "HEAD"), "main")
        self.assertEqual(int(git("rev-list", "--count", "HEAD")), 18)
        self.assertEqual(git("log", "-1", "--format=%s", "HEAD~1"), "Prepare the release")
        self.assertIn("1609.344", git("show", "HEAD:units.py").replace("_", ""))

    def test_bisection_is_over(self):
        self.assertFalse(Path(".git/BISECT_LOG").exists())


if __name__ == "__main__":
    unittest.main()
