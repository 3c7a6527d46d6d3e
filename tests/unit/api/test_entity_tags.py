"""Conditions on entity tags, as RFC 9110 compares them."""

from __future__ import annotations

import pytest

from fireswarm.api.reading.entity_tags import TagCondition, hash_content


@pytest.mark.parametrize(
    ("values", "weakly", "strongly"),
    [
        (['"a"'], True, True),
        (['"b", "a"'], True, True),
        (['"b"', '"a"'], True, True),
        (['"b",,"a" ,'], True, True),
        (['W/"a"'], True, False),
        (['W/"b", W/"a"'], True, False),
        (["*"], True, True),
        ([" * "], True, True),
        (['"b"'], False, False),
        (['"a,b"'], False, False),
        (['"A"'], False, False),
        (["a"], False, False),
        (['w/"a"'], False, False),
        (['"a" "b"'], False, False),
        (['"a'], False, False),
        (['*, "a"'], False, False),
        (['"a", nonsense'], False, False),
        ([""], False, False),
        ([], False, False),
    ],
)
def test_condition_matches_as_rfc_9110_says(values: list[str], weakly: bool, strongly: bool) -> None:
    condition = TagCondition.parse(values)
    assert condition.matches_weakly('"a"') is weakly
    assert (condition.any_version or '"a"' in condition.strong) is strongly


def test_a_weak_tag_of_the_server_matches_weakly() -> None:
    assert TagCondition.parse(['"a"']).matches_weakly('W/"a"')


def test_tags_with_commas_stars_and_other_letters_are_read_whole() -> None:
    condition = TagCondition.parse(['"x,y", "*", "é"'.encode().decode("latin-1")])
    assert condition.strong == {'"x,y"', '"*"', '"Ã©"'} and not condition.any_version


def test_different_contents_have_different_strong_tags() -> None:
    assert hash_content(b"a") != hash_content(b"b") and hash_content(b"a").startswith('"')


def test_a_long_malformed_list_is_refused_at_once() -> None:
    assert TagCondition.parse(['"a", ' * 5_000 + "\x00"]) == TagCondition()
    assert TagCondition.parse([" ," * 20_000 + "x"]) == TagCondition()
