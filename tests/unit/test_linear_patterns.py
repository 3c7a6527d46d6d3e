"""Patterns on text that strangers write take time in proportion to its length."""
# A pattern is measured alone, so private names are used.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from fireswarm.capabilities.web import content
from fireswarm.redaction import Redactor, StreamRedactor
from fireswarm.skills.checks import pack
from fireswarm.skills.packs import parse, scripts

SHORT, LONG = 10_000, 80_000
MOST_GROWTH = 24
"""A linear pattern takes 8 times as long for 8 times the text, a quadratic one 64 times."""

redact = Redactor(["a known secret"]).text


def stream(text: str) -> str:
    redactor = StreamRedactor(Redactor())
    return "".join(redactor.feed(text[place : place + 4_096]) for place in range(0, len(text), 4_096)) + redactor.rest()


def small_pieces(text: str) -> str:
    redactor = StreamRedactor(Redactor())
    return "".join(redactor.feed(text[place : place + 16]) for place in range(0, len(text), 16)) + redactor.rest()


ATTACKS: dict[str, tuple[Callable[[str], object], str, str]] = {
    "sk": (redact, "sk-", " "),
    "sk word": (redact, "sk-ab-", "@"),
    "token": (redact, "eyJ-", "@"),
    "token parts": (redact, "eyJ.", "@"),
    "three parts": (redact, "eyJaaaaaaaa.", "@"),
    "url": (redact, "a.", "://"),
    "urls": (redact, "a://b:", " "),
    "url without at": (redact, "a://b:ccc", " "),
    "header": (redact, "authorization=", "@"),
    "header spaces": (redact, "authorization:  ", "@"),
    "names": (redact, "password=", "x"),
    "quoted name": (redact, 'password="', "x"),
    "names without a sign": (redact, "tokensecret_key ", "x"),
    "open name": (stream, "token ", "x"),
    "open value": (stream, 'password: "a ', "x"),
    "value": (Redactor().value, '"secret":', "x"),
    "long name": (redact, "x-api-", "key"),
    "list": (redact, 'passwords: ["a", ', "x"),
    "lines of a list": (redact, "passwords:\n - aaaaa", "x"),
    "open lists": (stream, 'passwords: ["a ', "x"),
    "open lines": (stream, "password:\n - a ", "x"),
    "elements": (redact, "<password ", ">x</"),
    "open elements": (stream, "<password> ", "x"),
    "attributes": (redact, '"password" value', "="),
    "programs": (redact, "mysql ", "-px"),
    "options": (redact, "mysql -p", "x"),
    "users": (redact, "curl -u a:", " "),
    "open programs": (stream, "mysql -u ", "x"),
    "netrc": (redact, "machine a login b ", "password"),
    "open netrc": (stream, "machine a login ", "x"),
    "providers": (redact, "discord token ", "0" * 32),
    "open providers": (stream, "discord token = ", "0"),
    "hints": (redact, "ghp_SK.eyatlasv1", " "),
    "private key": (redact, "-----BEGIN PRIVATE ", "@"),
    "open header": (stream, "x-api-key.", " x"),
    "open header spaces": (stream, "authorization : ", '"x '),
    "stream": (stream, "eyJ-", "@"),
    "stream of a long secret": (small_pieces, "sk-a1", ""),
    "escape": (Redactor().clean, "\x1b[0", "!"),
    "data uri": (lambda text: content._DATA_URI.sub("", text), "(data:{", "\n"),
    "parentheses": (pack._without_parentheses, "(", "\n"),
    "front matter": (lambda text: parse._SIMPLE.fullmatch("a: M" + text), " ", "!\n"),
    "blank lines": (scripts._DOCSTRING.match, "\n", "x"),
    "comments": (scripts._DOCSTRING.match, "#\n ", "x"),
}


def seconds(call: Callable[[str], object], text: str) -> float:
    spent: list[float] = []
    for _ in range(3):
        began = time.process_time()
        call(text)
        spent.append(time.process_time() - began)
    return min(spent)


@pytest.mark.parametrize("name", ATTACKS)
def test_time_grows_no_faster_than_the_text(name: str) -> None:
    call, pump, end = ATTACKS[name]
    texts = [pump * (size // len(pump)) + end for size in (SHORT, LONG)]
    short, long = (seconds(call, text) for text in texts)
    assert long < 0.02 or long < MOST_GROWTH * short, (
        f"{short:.4f} s for {SHORT:,}, {long:.4f} s for {LONG:,} characters"
    )
