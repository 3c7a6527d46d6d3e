"""Count the words of a text.

python3 wordfreq.py FILE [--top N]
"""

import argparse
import re
from collections import Counter
from pathlib import Path


def count_words(text):
    """Count words without regard to case."""
    return Counter(re.findall(r"[^\W\d_]+", text.lower()))


def most_common(text, top):
    """Return the most frequent words; those of the same number by the alphabet."""
    counts = count_words(text)
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:top]


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Count the words of a text.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--top", type=int, default=10, help="number of words to print")
    given = parser.parse_args(arguments)
    for word, count in most_common(given.file.read_text(encoding="utf-8"), given.top):
        print(f"{count:>6} {word}")


if __name__ == "__main__":
    main()
