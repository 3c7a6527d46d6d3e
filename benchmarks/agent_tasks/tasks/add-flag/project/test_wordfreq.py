import contextlib
import io
import tempfile
import unittest
from pathlib import Path

from wordfreq import count_words, main, most_common

TEXT = "The cat and the dog: a cat is a cat. Änderung, änderung!"


def output_of(*options):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text.txt"
        path.write_text(TEXT, encoding="utf-8")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            main([str(path), *options])
    return printed.getvalue().split()


class WordFreqTest(unittest.TestCase):
    def test_case_is_ignored(self):
        self.assertEqual(count_words(TEXT)["änderung"], 2)

    def test_order(self):
        self.assertEqual(most_common(TEXT, 3), [("cat", 3), ("a", 2), ("the", 2)])

    def test_top(self):
        self.assertEqual(output_of("--top", "1"), ["3", "cat"])


if __name__ == "__main__":
    unittest.main()
