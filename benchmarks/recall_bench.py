"""Recall: how often the fact that answers a question is among the first five, in one JSON line.

The texts are not ours: they are the docstrings of installed packages (scikit-learn, SciPy, NumPy, Matplotlib and
others, in the versions of requirements.lock), parsed and not imported. For each function, method or class whose
docstring has a summary and a prose paragraph below it, the **paragraph is a fact** and the **summary is a question**:
both were written by the same people about the same thing, in different words. The name of the function is in neither
in ``value_only``; in ``with_key`` it is the fact's key, as a role would name it.

Limits: the texts are English and technical; a paragraph need not answer its summary, and several facts may fit a
question as well as the one that counts, so 1.0 cannot be reached. What was chosen (weights, the treatment of function
words) was chosen on the development half, by the hash of the question; the figures are of the other half.
``old`` is what recall did before: lowercase ASCII words of three letters or more as keywords, any of 30, in no order.

``hybrid`` adds vectors, kept and searched in the embedded Firestore. The embedding model is WordLlama's table of 256
numbers per word piece (16 MB, MIT), which `make bench` installs: a text is the mean of its pieces. It runs without a
network, and is much weaker than a provider's model; no provider was measured.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import numpy as np

from benchmarks.common import benchmark_kit, emit
from fireswarm.contracts.ports import Embedded
from fireswarm.contracts.skills.skill import Fact
from fireswarm.storage.memory import Memory
from fireswarm.storage.memory.vectors import MAX_MADE, FactVectors

PACKAGES = ("sklearn", "scipy", "numpy", "matplotlib", "pydantic", "anyio", "click", "rich", "fsspec", "hypothesis")
PER_PACKAGE = 400
FACTS, QUESTIONS = 3_000, 600
FIRST = 5
MIN_WORDS = 8
SESSION = "bench"
MODEL_FOLDER = Path(__file__).resolve().parent.parent / ".tools/vectors"
"""Packages with a small embedding model; `make bench` installs them."""

_PROSE = re.compile(r"^[A-Z][^\n]*(?:\n(?![ \t]*[-*.>|:=+]|[ \t]{4,})[^\n]+)*$")
_NO_PROSE = re.compile(r">>>|::$|^\s*\w+ : |^[-=~]{3,}|:math:|^\.\. ", re.M)
_MARKUP = re.compile(r":\w+:`~?([^`]*)`|``?([^`]*)``?")
_OLD_WORD = re.compile(r"[a-z][a-z0-9_.-]{2,}")
_OLD_COMMON = frozenset(
    {"and", "are", "for", "from", "into", "our", "that", "the", "this", "was", "what", "which", "with"}
)


@dataclass(frozen=True)
class Pair:
    """One documented thing: its name, a summary as the question, a paragraph as the fact."""

    package: str
    name: str
    question: str
    fact: str
    source: str


def plain(text: str) -> str:
    """Return a paragraph in one line without markup."""
    return " ".join(_MARKUP.sub(lambda found: found[1] or found[2] or "", text).split())


def pair_of(package: str, name: str, docstring: str, source: str) -> Pair | None:
    """Return the pair of a docstring, or None if it has no summary or no prose below."""
    summary, *paragraphs = [part.strip() for part in re.split(r"\n\s*\n", docstring.strip())]
    body = next((part for part in paragraphs if _PROSE.match(part) and not _NO_PROSE.search(part)), "")
    question, fact = plain(summary), plain(body)
    if not fact.endswith(".") or _NO_PROSE.search(summary) or min(len(question.split()), len(fact.split())) < MIN_WORDS:
        return None
    return None if question in fact else Pair(package, name, question, fact, source)


def pairs_of(package: str) -> Iterator[Pair]:
    """Yield the pairs of a package, file by file."""
    found = importlib.util.find_spec(package)
    assert found is not None and found.submodule_search_locations is not None
    root = Path(next(iter(found.submodule_search_locations)))
    for path in sorted(root.rglob("*.py")):
        if "tests" in path.parts:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                source = f"{package}/{path.relative_to(root)}:{node.lineno}"
                if (pair := pair_of(package, node.name, ast.get_docstring(node) or "", source)) is not None:
                    yield pair


def order_of(text: str) -> bytes:
    """Return a place in a random order that never changes."""
    return hashlib.sha256(text.encode()).digest()


def read_pairs() -> list[Pair]:
    """Return at most PER_PACKAGE pairs of each package in a random order; equal questions and equal facts once."""
    pairs: list[Pair] = []
    questions: set[str] = set()
    facts: set[str] = set()
    for package in PACKAGES:
        kept = 0
        for pair in sorted(pairs_of(package), key=lambda pair: order_of(pair.source)):
            if kept == PER_PACKAGE:
                break
            if pair.question not in questions and pair.fact not in facts:
                questions.add(pair.question)
                facts.add(pair.fact)
                pairs.append(pair)
                kept += 1
    return sorted(pairs, key=lambda pair: order_of(pair.question))[:FACTS]


def is_test(pair: Pair) -> bool:
    """Half of the questions, by their hash."""
    return order_of(f"half {pair.question}")[0] % 2 == 0


def old_keywords(text: str) -> list[str]:
    """Return the keywords of a text as recall took them before."""
    counted = Counter(word.strip(".-_") for word in _OLD_WORD.findall(text.lower()))
    words = [word for word in counted if word not in _OLD_COMMON and len(word) > 2]
    return sorted(words, key=lambda word: (-counted[word], word))[:30]


def old_recall(pairs: Sequence[Pair], key_of: Callable[[int], str]) -> Callable[[str], list[int]]:
    """Return the recall of before, with the words of the whole fact as its keywords."""
    keywords = [set(old_keywords(f"{key_of(number)} {pair.fact}")) for number, pair in enumerate(pairs)]

    def recall(query: str) -> list[int]:
        asked = set(old_keywords(query))
        return [number for number, words in enumerate(keywords) if asked & words]

    return recall


class StaticModel:
    """An embedding model that is a table: the vector of a text is the mean of the vectors of its word pieces."""

    name, dimensions = "wordllama-l2-supercat-256", 256

    def __init__(self) -> None:
        sys.path.insert(0, str(MODEL_FOLDER))
        from safetensors.numpy import load_file  # pyright: ignore
        from tokenizers import Tokenizer  # pyright: ignore

        home = MODEL_FOLDER / "wordllama"
        (table,) = load_file(home / "weights/l2_supercat_256.safetensors").values()
        self._table: Any = table.astype(np.float32)
        self._pieces: Any = Tokenizer.from_file(str(home / "tokenizers/l2_supercat_tokenizer_config.json"))

    async def embed(self, texts: Sequence[str], *, is_query: bool) -> Embedded:
        """Return a vector for each text."""
        split: Any = self._pieces.encode_batch(list(texts), add_special_tokens=False)
        return Embedded([tuple(self._table[each.ids].mean(0).tolist()) for each in split], 0)


@dataclass(frozen=True)
class Found:
    """What a way of recall finds: the place of the right fact for each question, from 1, or 0; and the times."""

    places: list[int]
    seconds: list[float]

    def figures(self) -> dict[str, float]:
        """Return recall among the first five, the share of first places, and the median time."""
        return {
            "recall_at_5": round(sum(map(bool, self.places)) / len(self.places), 4),
            "first": round(self.places.count(1) / len(self.places), 4),
            "recall_ms_p50": round(1_000 * statistics.median(self.seconds), 2),
        }


async def ask(memory: Memory, pairs: Sequence[Pair], asked: Sequence[int]) -> Found:
    """Ask each question once."""
    found = Found([], [])
    for number in asked:
        started = time.perf_counter()
        names = [fact.source for fact in await memory.recall(SESSION, pairs[number].question, FIRST)]
        found.seconds.append(time.perf_counter() - started)
        found.places.append(names.index(str(number)) + 1 if str(number) in names else 0)
    return found


async def measure(pairs: Sequence[Pair], key_of: Callable[[int], str], asked: Sequence[int]) -> dict[str, Any]:
    """Return the figures of one set of facts: by words, by words and vectors, and as recall was before."""

    async def ignore(*_spent: object) -> None:
        pass

    async with benchmark_kit() as swarm:
        memory: Memory = swarm.memory
        facts = [
            Fact(bucket=pair.package, key=key_of(number), value=pair.fact, source=str(number))
            for number, pair in enumerate(pairs)
        ]
        for start in range(0, len(facts), 100):
            await swarm.store.commit(await memory.learn(SESSION, "bench", facts[start : start + 100]))
        await memory.recall(SESSION, "the first recall reads all facts")
        by_words = await ask(memory, pairs, asked)
        old = old_recall(pairs, key_of)
        before = sum(number in old(pairs[number].question)[:FIRST] for number in asked)
        figures: dict[str, Any] = {"words": by_words.figures(), "old_recall_at_5": round(before / len(asked), 4)}
        if (MODEL_FOLDER / ".ready").exists():
            vectors = FactVectors(swarm.store, swarm.clock, StaticModel, str, ignore)
            hybrid = Memory(swarm.store, swarm.clock, vectors=vectors)
            for _ in range(0, len(facts), MAX_MADE):
                await hybrid.recall(SESSION, "the first recalls make the vectors")
            by_both = await ask(hybrid, pairs, asked)
            both = list(zip(by_words.places, by_both.places, strict=True))
            figures["hybrid"] = by_both.figures() | {
                "only_with_vectors": sum(not words and bool(together) for words, together in both),
                "only_without": sum(bool(words) and not together for words, together in both),
            }
    return figures


async def main() -> None:
    """Print the benchmark's line."""
    pairs = read_pairs()
    asked = [number for number, pair in enumerate(pairs) if is_test(pair)][:QUESTIONS]
    emit(
        "recall",
        facts=len(pairs),
        questions=len(asked),
        packages=dict(Counter(pair.package for pair in pairs).most_common()),
        value_only=await measure(pairs, lambda number: f"fact {number}", asked),
        with_key=await measure(pairs, lambda number: f"{pairs[number].name} {number}", asked),
    )


if __name__ == "__main__":
    anyio.run(main)
