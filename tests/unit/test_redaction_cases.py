"""Every published format of a credential is redacted on every way it may be written, and innocent text stays whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fireswarm.redaction import REDACTED, FileSecrets, Redactor, StreamRedactor, tag_secret
from tests.unit.redaction_cases import HOSTILE, INNOCENT

ROOT = Path(__file__).parents[2]
redactor = Redactor()


def leaks(secret: str, shown: str) -> bool:
    """Return True if the secret, its second half, or a line of it is in *shown*."""
    parts = {secret, secret[len(secret) // 2 :], *(line for line in secret.splitlines() if "----" not in line)}
    return any(part in shown for part in parts)


def test_both_tables_are_large(capsys: pytest.CaptureFixture[str]) -> None:
    print(f"{len(HOSTILE)} hostile, {len(INNOCENT)} innocent texts")
    assert len(HOSTILE) >= 60
    assert len(INNOCENT) >= 60


FORMS = {
    "no-break spaces": {" ": "\xa0"},
    "thin spaces": {" ": "\u2009"},
    "wide signs": {":": "\uff1a", "=": "\uff1d", "-": "\uff0d"},
    "raised and small signs": {":": "\ufe55", "=": "\u207c"},
    "a ratio": {":": "\u2236"},
    "curved quotes": {'"': "\u201c", "'": "\u2019"},
    "all": {" ": "\u3000", ":": "\uff1a", "=": "\ufe66", '"': "\u201d"},
}


@pytest.mark.parametrize("form", FORMS)
def test_secret_is_redacted_between_other_forms_of_the_same_signs(form: str) -> None:
    changed = {text: (text.translate(str.maketrans(FORMS[form])), secret) for text, secret in HOSTILE.values()}
    leaking = [odd for odd, secret in changed.values() if leaks(secret, redactor.text(odd.format(secret)))]
    assert leaking == []


@pytest.mark.parametrize("name", HOSTILE)
def test_secret_is_redacted_and_the_rest_stays(name: str) -> None:
    text, secret = HOSTILE[name]
    shown = redactor.text(text.format(secret))
    assert not leaks(secret, shown), shown
    before, _, after = text.format("\0").partition("\0")
    assert shown.startswith(before)
    assert shown.endswith(after)
    assert redactor.text(shown) == shown
    tagged = redactor.text(text.format(secret), by_line=True, mark=tag_secret)
    assert redactor.text(tagged) == redactor.clean(tagged) == tagged
    assert FileSecrets.find(text.format(secret), redactor).put_back(tagged) == text.format(secret)


@pytest.mark.parametrize("name", HOSTILE)
def test_secret_is_redacted_within_documents_keys_and_streams(name: str) -> None:
    text, secret = HOSTILE[name]
    whole = text.format(secret)
    for value in (
        {"note": whole},
        {"list": [{"deep": [whole]}]},
        {whole: 1},
        [whole],
        {"text": json.dumps({"a": whole})},
    ):
        assert not leaks(secret, json.dumps(redactor.value(value), ensure_ascii=False).replace("\\\\n", "\\n"))
    for size in (1, 3, 7, 16):
        stream = StreamRedactor(redactor)
        text_then = f"some words {whole} "
        shown = "".join(stream.feed(text_then[at : at + size]) for at in range(0, len(text_then), size)) + stream.rest()
        assert not leaks(secret, shown), size


@pytest.mark.parametrize("text", INNOCENT)
def test_innocent_text_stays_whole(text: str) -> None:
    assert redactor.text(text) == text
    assert redactor.value({"text": text}) == {"text": text}


@pytest.mark.parametrize(
    ("value", "cleaned"),
    [
        ({"password": "x"}, {"password": REDACTED}), ({"password": 1234}, {"password": REDACTED}),
        ({"apiKeys": ["a b", 5, {"name": "n"}]}, {"apiKeys": ["a b", 5, {"name": "n"}]}),
        ({"secrets": ["a b", 5, {"name": "n"}]}, {"secrets": ["a b", 5, {"name": "n"}]}),
        ({"clientSecret": ["a b", 5, {"name": "n"}]}, {"clientSecret": [REDACTED, REDACTED, {"name": "n"}]}),
        ({"a": {"passwords": ["one", "two"]}}, {"a": {"passwords": [REDACTED, REDACTED]}}),
        ({"token": None, "secret": True, "password": ""}, {"token": None, "secret": True, "password": ""}),
        ({"max_tokens": 4096, "next_page_token": "abc"}, {"max_tokens": 4096, "next_page_token": "abc"}),
    ],
)  # fmt: skip
def test_values_under_a_secret_name_are_redacted(value: object, cleaned: object) -> None:
    assert redactor.value(value) == cleaned


def test_results_with_names_like_secrets_stay() -> None:
    counted = {"pwd": "/work/x", "tests_pass": 12, "first_pass": 0.93, "text": "epoch=3 val_pass=0.93"}
    assert Redactor().value(counted) == counted


def test_given_values_are_redacted_by_their_format_only() -> None:
    given = {"api_token": "abc", "password": 4711, "note": "ghp_" + "a1B2" * 9}
    assert Redactor().value(given, by_name=False) == given | {"note": "[redacted]"}
    assert Redactor().value(given)["api_token"] == "[redacted]"


EXAMPLES = frozenset({"src/fireswarm/redaction/shapes.py"})
"""Files with secrets as examples."""

PROSE = sorted(
    path
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "roles/**/*.md",
        "skills/**/*.md",
        "src/fireswarm/**/*.py",
        "skills/**/*.py",
    )
    for path in ROOT.glob(pattern)
)


def test_own_documents_and_sources_stay_whole() -> None:
    assert len(PROSE) > 300
    changed = [
        path.relative_to(ROOT).as_posix()
        for path in PROSE
        if redactor.text(text := path.read_text(encoding="utf-8")) != text
    ]
    assert set(changed) <= EXAMPLES
