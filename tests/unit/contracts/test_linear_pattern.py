"""Patterns of people and models are matched in linear time, and globs as documented."""

from __future__ import annotations

import time

import pytest

from fireswarm.contracts import inputs
from fireswarm.contracts.linear_pattern import check_glob, check_pattern, match_glob, search_pattern
from fireswarm.errors import ConfigError
from fireswarm.pipelines.scope import Allowlist
from fireswarm.skills.allowed_tools import denial_reason

LONG = "a" * 40 + "!"


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("src/*.py", "src/a.py", True), ("src/*.py", "src/a/b.py", False), ("src/**", "src/a/b.py", True),
        ("**/b.py", "b.py", True), ("**/b.py", "a/c/b.py", True), ("a?.py", "ab.py", True), ("a?.py", "a/.py", False),
        ("**", "a\nb", True), ("a/**", "a/b/c\nd", True), ("*", "a\nb", True), ("**/b", "a\n/b", True),
        ("**/*.{ts,tsx}", "a/b.tsx", True), ("**/*.{ts,tsx}", "b.ts", True), ("**/*.{ts,tsx}", "b.tsxx", False),
        ("{src,lib/*}/*.{a,b}", "lib/x/y.b", True), ("{src,lib/*}/*.{a,b}", "lib/y.b", False), ("a{,b}", "a", True),
        ("{a,{b,c}d}", "cd", True), ("{a,{b,c}d}", "ad", False), ("{**/,}a", "x/y/a", True), ("{?,bc}", "bc", True),
        ("{a,b", "{a,b", True), ("{a,b", "a", False), ("{x,{a,b}", "{x,b", True), ("a,b}", "a,b}", True),
        ("{{name}}/{}", "{{name}}/{}", True), ("a,b", "a,b", True), ("{a|b,(}", "(", True), ("{a|b,(}", "a", False),
        ("a+(b) c#&~-.py", "a+(b) c#&~-.py", True), ("a.py", "axpy", False), ("*", "\ud800", True), ("", "", True),
    ],
)  # fmt: skip
def test_globs(pattern: str, path: str, matches: bool) -> None:
    assert match_glob(pattern, path) is matches


def test_braces_of_a_glob_are_bounded() -> None:
    check_glob("{" + ",".join(map(str, range(32))) + "}/{" + ",".join(map(str, range(32))) + "}")
    with pytest.raises(ConfigError, match="the braces have 65 alternatives; at most 64 are allowed"):
        check_glob("{" + ",".join(map(str, range(65))) + "}")
    with pytest.raises(ConfigError, match="2,000 are allowed"):
        check_glob("a" * 2_001)


def elapsed(began: float) -> float:
    return time.process_time() - began


def test_globs_with_many_stars_are_fast() -> None:
    began = time.process_time()
    stars = "*a" * 30 + "b"
    assert not match_glob(stars, "a" * 200)
    assert not match_glob("{*a,*a*a}" * 30 + "b", "a" * 200)
    assert not match_glob("{a," * 60 + "b" + "}" * 60, "c")
    assert not Allowlist((stars,)).allows("a" * 200)
    assert denial_reason([f"Read({stars})"], "Read", "a" * 200) is not None
    assert elapsed(began) < 1


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"properties": {"a": {"pattern": "^(a+)+$"}}}, {"a": LONG}),
        ({"properties": {"a": {"items": {"anyOf": [{"pattern": "^(a|a)*$"}]}}}}, {"a": [LONG]}),
        ({"patternProperties": {"^(a+)+$": {"type": "integer"}}, "additionalProperties": False}, {LONG: 1}),
    ],
)
def test_pattern_of_a_schema_cannot_take_exponential_time(schema: dict[str, object], value: dict[str, object]) -> None:
    began = time.process_time()
    assert inputs.faults(schema, value)
    assert elapsed(began) < 2


def test_schema_rules_about_names_still_hold() -> None:
    schema = {
        "properties": {"n": {}}, "patternProperties": {"^x_": {"type": "integer"}}, "additionalProperties": False,
    }  # fmt: skip
    assert inputs.faults(schema, {"n": 1, "x_a": 2}) == []
    assert inputs.faults(schema, {"x_a": "text"}) == ["x_a: 'text' is not of type 'integer'"]
    assert inputs.faults(schema, {"other": 1}) == ["unexpected property 'other'"]
    assert inputs.faults({"additionalProperties": {"type": "string"}}, {"a": 1}) == ["a: 1 is not of type 'string'"]
    assert inputs.faults({"properties": {"a": {"pattern": "^[a-z]+$"}}}, {"a": "A"}) == [
        "a: 'A' does not match '^[a-z]+$'"
    ]
    assert inputs.faults({"enum": [{"pattern": "(?=x)"}]}, {"pattern": "(?=x)"}) == []


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(?=a)", "look-around"), (r"(a)\1", "backreferences"), ("a{1000}{1000}", "size limit"),
        ("a" * 3_000, "2,000 are allowed"),
    ],
)  # fmt: skip
def test_pattern_that_cannot_be_matched_in_linear_time_is_rejected_with_the_reason(pattern: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        check_pattern(pattern)
    with pytest.raises(ConfigError):
        inputs.faults({"properties": {"a": {"pattern": pattern}}}, {})
    assert search_pattern("b", "abc")
