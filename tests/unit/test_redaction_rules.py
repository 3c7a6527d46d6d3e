"""Every published rule redacts its format, however it is written, and names what it is."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import Any

import pytest

from fireswarm.redaction import REDACTED, Redactor, StreamRedactor
from fireswarm.redaction.rules import published_rules
from fireswarm.redaction.search import find_shapes
from fireswarm.redaction.shapes import SHAPES
from tests.support.samples import samples

DATA: dict[str, Any] = json.loads(files("fireswarm.redaction").joinpath("rules.json").read_text(encoding="utf-8"))
RULES = {rule["id"]: rule for rule in DATA["rules"]}
AROUND = ("see {}, then", '"{}"', "({})", "{}.\n", "a\n{}\nb", "x={};", "<a>{}</a>", "`{}`")
SHAPE_OF = {shape.name: shape for shape in published_rules()}
redactor = Redactor()


def texts_of(rule: dict[str, Any]) -> list[tuple[str, str]]:
    """Return pairs of a text around a secret and the secret, one for each branch of the rule's pattern."""
    if "named" in rule:
        names = list(samples(rule["named"]))
        return [(f"{name}_api_key = {{}}", value) for value in samples(rule["value"]) for name in names]
    if rule["id"] == "facebook-access-token":
        return [("facebook {}", text) for text in samples(rule["pattern"])]
    return [("{}", text) for text in samples(rule["pattern"])]


def secret_in(rule: dict[str, Any], text: str) -> str:
    """Return the part of a sample that is secret."""
    match = re.search(rule["pattern"], text, re.ASCII) if "pattern" in rule else None
    return match["secret"] if match is not None and "secret" in match.re.groupindex else text


def test_every_rule_of_the_data_is_used() -> None:
    assert sorted(shape.name for shape in published_rules()) == sorted(RULES)
    assert len(RULES) >= 200
    left_out = [name for names in DATA["left_out"].values() for name in names]
    assert not RULES.keys() & set(left_out)
    assert DATA["used"] + len(left_out) == 222  # in version 8.30.1
    assert "MIT License" in DATA["license"]


@pytest.mark.parametrize("name", RULES)
def test_rule_matches_its_own_samples(name: str) -> None:
    shape, rule = SHAPE_OF[name], RULES[name]
    for text, value in texts_of(rule):
        matches = [
            match for match in shape.pattern.finditer(text.format(value)) if not shape.counts or shape.counts(match)
        ]
        assert matches, text.format(value)


@pytest.mark.parametrize("name", RULES)
def test_secret_of_a_rule_is_redacted_wherever_it_stands(name: str) -> None:
    for text, value in texts_of(RULES[name]):
        secret = secret_in(RULES[name], value)
        shown = redactor.text(text.format(value))
        assert secret not in shown, text
        assert REDACTED in shown
        for around in AROUND if "named" not in RULES[name] else ("{}\n", '{}"', "{},", "a\n{}\n"):
            whole = around.format(text.format(value))
            assert secret not in redactor.text(whole), whole
            assert secret not in json.dumps(redactor.value({"note": whole, "n": [1, {"a": whole}]})), whole
            assert redactor.suspects([json.dumps({"note": whole}, ensure_ascii=False).encode()]), whole


@pytest.mark.parametrize("name", RULES)
def test_secret_of_a_rule_is_redacted_in_a_stream(name: str) -> None:
    for text, value in texts_of(RULES[name])[:3]:
        whole = f"some words {text.format(value)} and more "
        for size in (1, 7, 16):
            stream = StreamRedactor(redactor)
            shown = "".join(stream.feed(whole[at : at + size]) for at in range(0, len(whole), size)) + stream.rest()
            assert secret_in(RULES[name], value) not in shown, (size, whole)


def test_names_of_formats_are_unique() -> None:
    names = [*RULES, *(shape.name for shape in SHAPES)]
    assert len(names) == len(set(names))


HASH = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    "text",
    [
        f"datadog: {HASH[:40]}", f"sentry image digest = {HASH}", f"linear: {HASH[:32]}", f"discord = {HASH}",
        "heroku: 123e4567-e89b-12d3-a456-426614174000", "Dropbox, implementations of the protocol",
        f"sourcegraph indexes commit {HASH[:40]}", f"git checkout {HASH[:40]} # for the api", "travis: build of 2024",
        f"bitbucket: {HASH[:32]}", f"1712345678901234|{HASH[:32]}|x", "settings.authentication_backends_of_the_app",
        "s.startswithsomethinglonger", "linear token limits = maximumnumberofwordsinatext",
        "the path patience.of.saints",
    ],
)  # fmt: skip
def test_hashes_ids_and_words_after_the_name_of_a_provider_stay(text: str) -> None:
    assert redactor.text(text) == text
    assert not list(find_shapes(text))
