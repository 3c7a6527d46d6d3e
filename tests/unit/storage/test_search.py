"""Words of any language, and an index whose documents change one at a time."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fireswarm.storage.search.bm25 import TextIndex, rank_texts
from fireswarm.storage.search.words import words

ALPHABET = "abö .Öß数据ทข-é"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rq, Go & Öl", ["rq", "go", "öl"]),
        ("version 1.23", ["version", "1", "23"]),
        ("C++ und Ｃ＃ für Öl", ["c++", "und", "c#", "für", "öl"]),
        ("数据库是 PostgreSQL", ["数据", "据库", "库是", "postgresql"]),
        ("库", ["库"]),
        ("PostgreSQL数据库", ["postgresql", "数据", "据库"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("สวัสดี", ["สว", "วั", "ัส", "สด", "ดี"]),
        ("Weich\u00adtrennung ü", ["weichtrennung", "ü"]),
        ("🙂 — …", []),
        ("", []),
    ],
)
def test_words_are_runs_of_letters_marks_and_numbers(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@given(st.text())
def test_words_do_not_depend_on_case_and_composition(text: str) -> None:
    found = words(text)
    assert all(words(word) == [word] for word in found if len(word) > 2 and not word.endswith(("+", "#")))
    if not text.isascii():
        assert words(unicodedata.normalize("NFD", text)) == words(unicodedata.normalize("NFC", text))


@given(st.lists(st.tuples(st.integers(0, 4), st.text(ALPHABET, max_size=12)), max_size=12), st.text(ALPHABET))
def test_index_that_changed_ranks_like_a_new_one(changes: list[tuple[int, str]], query: str) -> None:
    changed, current = TextIndex(), dict[str, str]()
    for number, text in changes:
        name = str(number)
        if text:
            changed.add(name, [(text, 1.0)])
            current[name] = text
        else:
            changed.remove(name)
            current.pop(name, None)
    fresh = TextIndex()
    for name, text in current.items():
        fresh.add(name, [(text, 1.0)])
    ranked = changed.rank(query)
    assert [name for name, _ in ranked] == [name for name, _ in fresh.rank(query)]
    assert [score for _, score in ranked] == pytest.approx([score for _, score in fresh.rank(query)])
    assert changed.postings.keys() == fresh.postings.keys()


def test_rare_word_counts_more_than_a_common_one() -> None:
    texts = ["common", "common", "common", "common rare", "other"]
    scores = rank_texts("common rare", texts)
    assert scores[3] == max(scores) and scores[4] == 0.0


def test_function_words_count_only_if_there_are_no_others() -> None:
    assert rank_texts("what is the time", ["what it is", "time flies"])[0] == 0.0
    assert rank_texts("it", ["what it is", "time flies"])[0] > 0.0


@pytest.mark.parametrize(("text", "query"), [("maxAttempts", "max attempts"), ("max attempts", "maxAttempts")])
def test_parts_of_joined_names_are_found(text: str, query: str) -> None:
    assert rank_texts(query, [text, "other"])[0] > 0.0
