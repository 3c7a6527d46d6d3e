import subprocess
import sys
import tempfile
import unittest
from pathlib import Path


def run(text, *options):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text.txt"
        path.write_text(text, encoding="utf-8")
        command = [sys.executable, "wordfreq.py", str(path), *options]
        return subprocess.run(command, capture_output=True, text=True, encoding="utf-8")


class HiddenTest(unittest.TestCase):
    def test_short_words_are_left_out(self):
        self.assertEqual(run("a a a bb bb ccc", "--min-length", "2").stdout.split(), ["2", "bb", "1", "ccc"])

    def test_short_words_do_not_use_up_top(self):
        self.assertEqual(run("a a a bb bb ccc", "--min-length", "3", "--top", "1").stdout.split(), ["1", "ccc"])

    def test_length_counts_letters_not_bytes(self):
        self.assertEqual(run("öl öl öl bahn", "--min-length", "3").stdout.split(), ["1", "bahn"])

    def test_without_the_flag_all_is_as_before(self):
        self.assertEqual(run("a a bb").stdout.split(), ["2", "a", "1", "bb"])

    def test_no_number_is_refused(self):
        refused = run("a", "--min-length", "many")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--min-length", refused.stderr)


if __name__ == "__main__":
    unittest.main()
