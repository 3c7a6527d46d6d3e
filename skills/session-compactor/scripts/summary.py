"""An extractive summary: whole sentences, chosen by value and without repetition, within a limit."""

from __future__ import annotations

import math
import re
from collections import Counter

from .material import KIND_WEIGHT, Sentence

_WORD = re.compile(r"[^\W_]{3,}", re.UNICODE)
_FIGURE = re.compile(r"\d")
REDUNDANCY = 0.7
"""Penalty for the similarity of a sentence to one already chosen (maximal marginal relevance)."""


def summarise(sentences: list[Sentence], objective: str, room: int) -> list[Sentence]:
    """Choose sentences until *room* characters are full; return them in their original order."""
    bags = [Counter(_WORD.findall(sentence.text.lower())) for sentence in sentences]
    holders = Counter(word for bag in bags for word in bag)
    asked = set(_WORD.findall(objective.lower()))
    total = len(sentences)
    rarity = {word: math.log(1 + total / count) for word, count in holders.items()}
    worth = [_worth(sentence, bag, rarity, asked) for sentence, bag in zip(sentences, bags, strict=True)]
    likeness = [0.0] * total
    left = set(range(total))
    chosen: list[int] = []
    while left:
        best = max(left, key=lambda index: (worth[index] * (1 - REDUNDANCY * likeness[index]), -index))
        left.discard(best)
        if len(sentences[best].text) + 3 > room:
            continue
        room -= len(sentences[best].text) + 3
        chosen.append(best)
        for index in left:
            likeness[index] = max(likeness[index], _alike(bags[best], bags[index]))
    return [sentences[index] for index in sorted(chosen, key=lambda index: sentences[index].order)]


def _worth(sentence: Sentence, bag: Counter[str], rarity: dict[str, float], asked: set[str]) -> float:
    if not bag:
        return 0.0
    telling = sum(rarity[word] for word in bag) / math.sqrt(len(bag))
    answering = sum(rarity[word] for word in bag if word in asked)
    figures = 1.25 if _FIGURE.search(sentence.text) else 1.0
    return KIND_WEIGHT[sentence.kind] * figures * (telling + 2 * answering)


def _alike(one: Counter[str], other: Counter[str]) -> float:
    """Return the Jaccard similarity of the words of two sentences."""
    union = len(one.keys() | other.keys())
    return len(one.keys() & other.keys()) / union if union else 0.0
