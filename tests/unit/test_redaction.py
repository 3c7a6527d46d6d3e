"""Secrets and control characters are removed from output, even when they arrive in pieces."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fireswarm.redaction import REDACTED, Redactor, StreamRedactor, sanitize, secret_name, secret_values, shows, spell
from fireswarm.redaction.harmless import MAX_REMEMBERED, MAX_REMEMBERED_CHARS
from fireswarm.redaction.redactor import (
    _clean_value,  # pyright: ignore[reportPrivateUsage]
)

SHAPES = [
    "sk-" + "ant-" + "aB3_" * 9, "sk-" + "proj-" + "a1" * 14, "AI" + "za" + "B" * 35, "ya" + "29." + "c" * 30,
    "gh" + "p_" + "d" * 36, "github" + "_pat_" + "e" * 40, "glp" + "at-" + "f" * 20, "xo" + "xb-" + "1234567890-abc",
    "AK" + "IA" + "G" * 16, "ey" + "JhbGciOiJI." + "ey" + "JzdWIiOiIx." + "c2lnbmF0dXJl",
]  # fmt: skip
KNOWN = "correct horse battery staple"
QUOTED = 'pass"word\\with\nlines'


@pytest.mark.parametrize("secret", SHAPES)
def test_strings_in_credential_format_are_redacted(secret: str) -> None:
    assert Redactor().text(f"key={secret}, and more") == f"key={REDACTED}, and more"


def test_private_key_without_its_end_is_redacted() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabcd\n-----END RSA PRIVATE KEY-----"
    assert Redactor().text(f"a {key} b") == f"a {REDACTED} b"
    assert Redactor().text(f"a {key[:50]}") == f"a {REDACTED}"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Authorization: Bearer abcdefgh12345", "Authorization: Bearer "),
        ("authorization=Basic YWxhZGRpbjpvcGVu", "authorization=Basic "),
        ('{"Authorization": "Bearer abcdefgh12345"}', '{"Authorization": "Bearer '),
        (r"{\"x-api-key\": \"abcdefgh12345\"}", r"{\"x-api-key\": \""),
        ("{'x-goog-api-key': 'abcdefgh12345'}", "{'x-goog-api-key': '"),
        ("postgres://me:hunter22@db/x", "postgres://me:"),
    ],
)
def test_secrets_in_headers_and_urls_are_redacted(text: str, left: str) -> None:
    cleaned = Redactor().text(text)
    assert cleaned.startswith(f"{left}{REDACTED}")
    assert "12345" not in cleaned
    assert "hunter22" not in cleaned


def test_environment_values_are_redacted_in_every_encoding() -> None:
    redactor = Redactor(secret_values({"MY_TOKEN": KNOWN, "DB_PASSWORD": QUOTED, "OTHER": "visible-value"}, ["LISTED"]))
    assert redactor.text(f"a {KNOWN} b") == f"a {REDACTED} b"
    assert redactor.text(f"a {QUOTED} b") == f"a {REDACTED} b"
    assert json.loads(redactor.text(json.dumps({"x": f"a {QUOTED}"}))) == {"x": f"a {REDACTED}"}
    assert redactor.text("visible-value") == "visible-value"
    assert redactor.value({KNOWN: [KNOWN, {"k": (KNOWN, 5, None)}]}) == {
        REDACTED: [REDACTED, {"k": [REDACTED, 5, None]}]
    }


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("ANTHROPIC_API_KEY", True), ("my_api_key", True), ("APIKEY", True), ("GITHUB_TOKEN", True), ("TOKEN", True),
        ("DB_PASS", True), ("PGPASSWORD", True), ("MYSQL_PWD", True), ("SSHPASS", True), ("CLIENT_SECRET", True),
        ("AWS_SECRET_ACCESS_KEY", True), ("REDISCLI_AUTH", True), ("GITHUB_PAT", True), ("KEY_PASSPHRASE", True),
        ("OTEL_EXPORTER_OTLP_HEADERS", True), ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", True), ("HEADERS", False),
        ("PATH", False), ("PWD", False), ("OLDPWD", False), ("SSH_AUTH_SOCK", False), ("GIT_AUTHOR_NAME", False),
        ("XAUTHORITY", False), ("TOKENIZERS_PARALLELISM", False), ("KEYBOARD", False), ("SSL_KEY_FILE", False),
        ("COMPASS", False), ("MONKEY", False),
    ],
)  # fmt: skip
def test_secret_variables_are_recognised_by_name(name: str, secret: bool) -> None:
    assert secret_name(name) is secret
    assert secret_values({name: "long-enough"}) == (("long-enough",) if secret else ())


def test_short_values_are_not_treated_as_secrets() -> None:
    assert secret_values({"API_KEY": "1", "MY_TOKEN": "true"}) == ()


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("\x1b[31mred\x1b[0m", "red"), ("\x1b]0;title\x07text", "text"), ("a\x08b\x00c\x7f", "abc"), ("a\r\nb\rc",
        "a\nbc"),
        ("tab\tline\n", "tab\tline\n"), ("\u202eevil\u202c", "evil"), ("\x1b(Bx", "x"), ("a\ud83db", "ab"),
        ("\x9b31mx", "31mx"),
    ],
)  # fmt: skip
def test_control_characters_are_removed(text: str, left: str) -> None:
    assert sanitize(text) == left


@settings(deadline=None)
@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_cleaned_text_is_encodable_and_has_no_control_characters(text: str) -> None:
    cleaned = Redactor([KNOWN]).clean(text)
    cleaned.encode()
    assert not any(ord(char) < 32 and char not in "\t\n" for char in cleaned)
    assert Redactor([KNOWN]).clean(cleaned) == cleaned or KNOWN in text


SECRETS = [*SHAPES, KNOWN, QUOTED, "-----BEGIN PRIVATE KEY-----\nMIIE abcd\n-----END PRIVATE KEY-----"]
HEADERS = ["Authorization: Bearer abcdefgh12345", '"x-api-key": "abcdefgh12345"']


@settings(deadline=None)
@given(
    st.lists(st.sampled_from([*SECRETS, *HEADERS, " ", "\n", "word", "correct horse", "sk-", '{"a": "b"}',
    "x" * 300]), max_size=12),
    st.lists(st.integers(1, 40), min_size=1, max_size=20),
)  # fmt: skip
def test_secret_split_over_pieces_is_redacted(parts: list[str], sizes: list[int]) -> None:
    text = "".join(f"{part} " for part in parts)
    stream = StreamRedactor(Redactor([KNOWN, QUOTED]))
    shown, place, turn = "", 0, 0
    while place < len(text):
        size = sizes[turn % len(sizes)]
        shown += stream.feed(text[place : place + size])
        place, turn = place + size, turn + 1
    shown += stream.rest()
    for secret in SECRETS:
        assert secret not in shown
    assert "abcdefgh12345" not in shown
    assert "MIIE" not in shown
    if not any(part in text for part in (*SECRETS, *HEADERS)):
        assert shown == text


@settings(deadline=None)
@given(st.integers(1, 9_000), st.sampled_from(SHAPES), st.integers(16, 700))
@example(6_109, SHAPES[0], 16)
@example(1, "sk-" + "a1" * 5_000, 700)
def test_secret_in_a_long_line_without_blanks_is_removed(before: int, secret: str, size: int) -> None:
    text = "." * before + secret + "." * 5_000
    stream = StreamRedactor(Redactor())
    shown = "".join(stream.feed(text[place : place + size]) for place in range(0, len(text), size)) + stream.rest()
    assert secret[:24] not in shown
    assert secret[-8:] not in shown


@pytest.mark.parametrize("before", range(6_090, 6_130))
def test_password_of_a_url_is_removed_wherever_a_long_line_is_cut(before: int) -> None:
    text = "+" * before + "http://u:" + "p4ss" * 18 + "@h/" + "+" * 5_000
    stream = StreamRedactor(Redactor())
    shown = "".join(stream.feed(text[place : place + 16]) for place in range(0, len(text), 16)) + stream.rest()
    assert "p4ss" not in shown


@pytest.mark.parametrize("before", ["", "jwt_", "session.", "a-long-session-name."])
def test_web_token_is_removed_whatever_stands_before_it(before: str) -> None:
    shown = Redactor().text(f"{before}{SHAPES[-1]}")
    assert shown == f"{before}{REDACTED}"


def test_private_key_with_a_part_of_a_web_token_is_removed_whole() -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIE\n.eyJ\n-----END PRIVATE KEY-----"
    assert Redactor().text(key) == REDACTED


def test_words_are_shown_as_soon_as_they_are_complete() -> None:
    stream = StreamRedactor(Redactor([KNOWN]))
    assert stream.feed("hello wor") == "hello "
    assert stream.feed("ld, correct hor") == "world, "
    assert stream.feed("se and more ") == "correct horse and more "
    assert stream.rest() == ""


def test_multiline_secret_is_redacted_by_each_of_its_lines() -> None:
    redactor = Redactor(["my-own-secret\n", "line-one-of-the-secret\n  line-two-of-the-secret\nend\n"])
    assert redactor.text("a my-own-secret.") == f"a {REDACTED}."
    assert redactor.text("b line-two-of-the-secret, the end") == f"b {REDACTED}, the end"


TEXTS = st.lists(
    st.sampled_from(
        [*SECRETS, *HEADERS, " ", "\n", "word", "x" * 300, "\x1b[1m", "password", "=", ": ", "Tr0ub4dor&3", "\\"]
    ),
    max_size=4,
).map("".join)
VALUES = st.recursive(
    TEXTS | st.integers() | st.none() | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(TEXTS | st.sampled_from(["api_token", "note"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.lists(VALUES, max_size=6))
def test_values_are_cleaned_as_their_texts_are_whatever_was_cleaned_before(values: list[Any]) -> None:
    used = Redactor([KNOWN, QUOTED])
    for value in values + values:
        fresh = Redactor([KNOWN, QUOTED])
        assert used.value(value) == _clean_value(value, fresh.clean)
        assert used.clean(str(value)) == fresh.clean(str(value))


@settings(deadline=None)
@given(st.lists(VALUES, max_size=6))
def test_calls_keep_their_control_characters_and_lose_the_same_secrets(values: list[Any]) -> None:
    redactor = Redactor([KNOWN, QUOTED])
    for value in values:
        kept = redactor.without_secrets(value)
        assert _clean_value(kept, sanitize, by_name=False) == redactor.value(value)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a\r\nb\x1b[1m\x0c\x00\u200f\u202e", "a\r\nb\x1b[1m\x0c\x00\u200f\u202e"),
        (f"\x1b[1m{KNOWN}\r\n", f"\x1b[1m{REDACTED}\r\n"),
        (f"{KNOWN[:4]}\x00{KNOWN[4:]}\r\n", f"{REDACTED}\n"),  # control characters that hide a secret
        ("a\ud800\r\n", "a\ufffd\r\n"),
    ],
)
def test_control_characters_of_a_call_stay_unless_they_hide_a_secret(text: str, kept: str) -> None:
    assert Redactor([KNOWN]).without_secrets({"content": [text]}) == {"content": [kept]}


def test_escape_sequence_without_an_end_does_not_hide_the_following_lines() -> None:
    assert sanitize("a\x1b]0;title\nb\n") == "a\nb\n"
    assert sanitize("a\x1b]0;title\x07b") == "ab"


@given(st.text(st.sampled_from("a\x1b]m[\x07\r\n\t\u200b\u202e\xa0\\é😀\x7f\x85"), max_size=30))
def test_spelled_text_hides_nothing(text: str) -> None:
    assert spell(spell(text)) == spell(text)
    assert sanitize(spell(text)) == spell(text) and shows(spell(text))
    assert (spell(text) == text) is shows(text)


def test_few_harmless_texts_are_remembered() -> None:
    redactor = Redactor()
    for number in range(3 * MAX_REMEMBERED):
        redactor.value({f"name {number}": [f"text {number}", f"{number}" + "x" * MAX_REMEMBERED_CHARS]})
    redactor.value([f"item {number}" for number in range(20 * MAX_REMEMBERED)])
    kept = redactor._harmless | redactor._harmless_names  # pyright: ignore[reportPrivateUsage]
    assert len(kept) <= 4 * MAX_REMEMBERED
    assert max(map(len, kept)) <= MAX_REMEMBERED_CHARS


INVISIBLE = "".join(map(chr, (
    *range(0xE0000, 0xE0080), *range(0xE0100, 0xE01F0), *range(0x200B, 0x2010), *range(0x2028, 0x202F),
    *range(0x2060, 0x2070), *range(0xFE00, 0xFE10), *range(0x180B, 0x1810), *range(0xFFF9, 0xFFFC),
    0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x3164, 0xFEFF, 0xFFA0, 0x16FE4, 0x1D159, 0x1D173,
)))  # fmt: skip


@pytest.mark.parametrize("char", INVISIBLE, ids=ascii)
def test_invisible_characters_are_removed_for_readers_and_spelled_for_approvals(char: str) -> None:
    for text in (f"a{char}b", f"{char}a", f"a{char}", f"a {char} b", f"a{char}{char}b"):
        plain = text.replace(char, "")
        assert sanitize(text) == plain
        assert Redactor().clean(text) == Redactor().value({"text": [text]})["text"][0] == plain
        assert not shows(text)
        assert char not in spell(text)
        assert json.loads(f'"{spell(text)}"') == text


@pytest.mark.parametrize("char", ["\u2800", "\ufffc"], ids=ascii)
def test_blank_characters_are_spelled_for_approvals(char: str) -> None:
    assert sanitize(f"a{char}b") == f"a{char}b"
    assert not shows(char) and char not in spell(char)


@pytest.mark.parametrize("text", ["❤️ 👨‍👩‍👧 🏳️‍🌈", "می‌خواهم", "क्‍ष", "naïve Öl 東京"])
def test_joiners_of_emoji_and_scripts_stay(text: str) -> None:
    assert sanitize(text) == text


def test_a_secret_with_invisible_characters_is_redacted() -> None:
    hidden = "\u200b".join(["gh" + "p_", *"a1B2" * 9])
    assert Redactor().clean(f"see {hidden} here") == f"see {REDACTED} here"
