"""Choose the most telling sentences of texts. Also a command: ``python summarize.py PATH``."""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from fireswarm import LeftOut, count_noun, read_text, walk_files

SUFFIXES = frozenset({".md", ".markdown", ".txt", ".rst", ".adoc", ".vtt", ".srt", ""})
MAX_SENTENCES = 20
SHORT_WORDS, LONG_WORDS = 6, 45
FIRST, BELOW_HEADING, ODD_LENGTH = 1.3, 1.15, 0.6
"""Factors of a sentence's score; references/method.md says when each applies."""

_STOP = frozenset((Path(__file__).resolve().parent / "stop_words.txt").read_text(encoding="utf-8").split())
_WORD = re.compile(r"[^\W\d_][\w'’-]+")
_SENTENCE = re.compile(r"(?<=[.!?])[\"”’)]*\s+(?=[\"“(]?[^\W\d_a-z]|\d)")
_TIMING = re.compile(r"(?:WEBVTT.*+|\d++|[\d:.,]++ --> [\d:.,].*+)$")
_IMAGE = re.compile(r"!\[[^\[\]]*+\]\((?:[^()]++|\([^()]*+\))*+\)")
_LINK = re.compile(r"\[([^\[\]]*+)\]\((?:[^()]++|\([^()]*+\))*+\)")
_HEADING = re.compile(r"^#++[ \t]++((?:[^\n \t#]++|[ \t#]++(?=[^\n \t#]))++)", re.MULTILINE)


@dataclass(frozen=True)
class Sentence:
    """A sentence, whether it is the first of the text, and whether it is the first below a heading."""

    text: str
    first: bool
    below_heading: bool

    @property
    def terms(self) -> list[str]:
        """Important words of the sentence, in lower case."""
        return [word for word in map(str.lower, _WORD.findall(self.text)) if word not in _STOP and len(word) > 2]


@dataclass(frozen=True)
class Summary:
    """Summary of one file. ``words`` is the length of the whole text."""

    path: str
    title: str
    words: int
    terms: tuple[str, ...]
    sentences: tuple[str, ...]


@dataclass
class Digest:
    """The summaries of all files, and the number of omitted files by reason."""

    summaries: list[Summary] = field(default_factory=list)
    left_out: LeftOut = field(default_factory=LeftOut)

    def common_terms(self, most: int = 8) -> list[str]:
        """Return terms that at least two files share, most frequent first."""
        shared = Counter(term for summary in self.summaries for term in summary.terms)
        return [term for term, files in sorted(shared.items(), key=lambda pair: (-pair[1], pair[0])) if files > 1][
            :most
        ]


def summarize(place: Path, *, sentences: int = 3, max_files: int = 200) -> Digest:
    """Summarise a file, or the text files of a folder in order of path."""
    digest = Digest()
    texts: dict[str, str] = {}
    for file, name in walk_files(place, digest.left_out, suffixes=SUFFIXES):
        if len(texts) >= max_files:
            digest.left_out.note(f"beyond the first {max_files:,} files", name)
            continue
        text = read_text(file, name, digest.left_out)
        if text is not None and text.strip():
            texts[name] = text.replace("\r\n", "\n")
    taken = {name: sentences_of(text) for name, text in texts.items()}
    having = Counter(term for listed in taken.values() for term in {t for s in listed for t in s.terms})
    for name, text in texts.items():
        digest.summaries.append(_summary(name, text, taken[name], having, len(texts), sentences))
    return digest


def _summary(
    name: str, text: str, listed: Sequence[Sentence], having: Mapping[str, int], files: int, keep: int
) -> Summary:
    counts = Counter(term for sentence in listed for term in sentence.terms)
    weights = {term: weight(often, files, having[term]) for term, often in counts.items()}
    chosen = choose(listed, weights, keep)
    terms = sorted(weights, key=lambda term: (-weights[term], term))[:6]
    return Summary(name, title_of(text, name), len(text.split()), tuple(terms), tuple(listed[n].text for n in chosen))


def weight(count: int, files: int, having: int) -> float:
    """Weight of a word: high if it is frequent in the file and occurs in few of the files."""
    return math.log1p(count) * (math.log(1 + files / having) if files > 1 else 1.0)


def choose(listed: Sequence[Sentence], weights: Mapping[str, float], keep: int) -> list[int]:
    """Return the positions of the best sentences that do not repeat each other, in the order of the text."""
    worth = {number: _worth(sentence, weights) for number, sentence in enumerate(listed)}
    chosen: list[int] = []
    for number in sorted(worth, key=lambda number: (-worth[number], number)):
        terms = set(listed[number].terms)
        if worth[number] <= 0 or any(2 * len(terms & set(listed[other].terms)) > len(terms) for other in chosen):
            continue
        chosen.append(number)
        if len(chosen) == keep:
            break
    return sorted(chosen)


def _worth(sentence: Sentence, weights: Mapping[str, float]) -> float:
    terms = sentence.terms
    if len(terms) < 2:
        return 0.0
    mean = sum(weights[term] for term in terms) / len(terms)
    length = len(sentence.text.split())
    if not SHORT_WORDS <= length <= LONG_WORDS:
        mean *= ODD_LENGTH
    return mean * (FIRST if sentence.first else BELOW_HEADING if sentence.below_heading else 1.0)


def sentences_of(text: str) -> list[Sentence]:
    """Return the sentences of the prose, without code, tables, markup and times of subtitles."""
    found: list[Sentence] = []
    heading = False
    for paragraph in paragraphs_of(text):
        if paragraph.startswith("#"):
            heading = True
            continue
        for part in _SENTENCE.split(paragraph):
            if len(part) > 2:
                found.append(Sentence(part.strip(), not found, heading))
                heading = False
    return found


def paragraphs_of(text: str) -> Iterator[str]:
    """Paragraphs, list items and headings (with their ``#``) as single lines."""
    text = re.sub(r"^---\n.*?\n---\n", "", text, count=1, flags=re.DOTALL)
    text = re.sub(r"^(```|~~~).*?^\1[^\n]*$", "", text, flags=re.DOTALL | re.MULTILINE)
    block: list[str] = []
    for line in [*text.splitlines(), ""]:
        line = line.strip()
        item = re.match(r"(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?", line)
        if block and (not line or item or line.startswith(("#", "|"))):
            yield plain(" ".join(block))
            block = []
        if line.startswith("#"):
            yield line
        elif line and not line.startswith("|") and not _TIMING.match(line):
            block.append(line[item.end() :] if item else line.lstrip("> "))


def plain(text: str) -> str:
    """Return a text without link targets, images and emphasis."""
    text = _LINK.sub(r"\1", _IMAGE.sub("", text))
    return re.sub(r"(\*\*|__|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)|`)", "", text).strip()


def title_of(text: str, name: str) -> str:
    """The first heading, else the file's name."""
    heading = _HEADING.search(text)
    return plain(heading[1]) if heading else Path(name).stem.replace("-", " ").replace("_", " ")


def as_markdown(digest: Digest) -> str:
    """Return a section for each file."""
    lines = [f"# Summary of {count_noun(len(digest.summaries), 'file')}", ""]
    common = digest.common_terms()
    if common:
        lines += [f"In common: {', '.join(common)}", ""]
    for summary in digest.summaries:
        lines += [
            f"## {summary.path}: {summary.title}",
            "",
            f"Terms: {', '.join(summary.terms)} ({count_noun(summary.words, 'word')})",
        ]
        lines += ["", *(f"- {sentence}" for sentence in summary.sentences), ""]
    lines += digest.left_out.section()
    return "\n".join(lines).rstrip("\n") + "\n"


def as_json(digest: Digest) -> dict[str, object]:
    """Return everything as plain values."""
    return {
        "files": [asdict(summary) for summary in digest.summaries],
        "common_terms": digest.common_terms(),
        "left_out": digest.left_out.counts(),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(description="Choose the most telling sentences of texts.")
    parser.add_argument("path", type=Path)
    parser.add_argument("--sentences", type=int, default=3, choices=range(1, MAX_SENTENCES + 1), metavar="1-20")
    parser.add_argument("--max-files", type=int, default=200)
    parser.add_argument("--format", choices=("json", "markdown"), default="markdown")
    given = parser.parse_args(arguments)
    if not given.path.exists():
        parser.error(f"there is nothing at {given.path}")
    digest = summarize(given.path, sentences=given.sentences, max_files=given.max_files)
    text = (
        as_markdown(digest) if given.format == "markdown" else json.dumps(as_json(digest), indent=2, ensure_ascii=False)
    )
    sys.stdout.write(text.rstrip("\n") + "\n")
    return 0 if digest.summaries else 1


if __name__ == "__main__":
    sys.exit(main())
