"""Field paths and masks against plain dictionaries."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firelite.documents.fields import lookup, merge, parse_mask, project
from firelite.documents.limits import name_bytes
from firelite.documents.paths import check_document_name, format_field_path, parse_field_path
from firelite.documents.protos import Document, Value
from firelite.errors import InvalidArgument

NAMES = st.sampled_from(["a", "b", "c"])
TREES: st.SearchStrategy[Any] = st.recursive(
    st.integers(0, 9), lambda inner: st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)
DOCUMENTS = st.dictionaries(NAMES, TREES, max_size=3)
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(tuple)


def message(tree: Any) -> Any:
    if isinstance(tree, int):
        return Value(integer_value=tree)
    result = Value()
    result.map_value.SetInParent()
    for key, value in tree.items():
        result.map_value.fields[key].CopyFrom(message(value))
    return result


def tree(value: Any) -> Any:
    if value.WhichOneof("value_type") == "map_value":
        return {key: tree(inner) for key, inner in value.map_value.fields.items()}
    return value.integer_value


def document(content: dict[str, Any]) -> Any:
    result = Document(name="d")
    for key, value in content.items():
        result.fields[key].CopyFrom(message(value))
    return result


def content_of(found: Any) -> dict[str, Any]:
    return {key: tree(value) for key, value in found.fields.items()}


def get(content: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if not isinstance(content, dict) or name not in content:
            return None
        content = content[name]  # pyright: ignore[reportUnknownVariableType] - a tree of anything
    return content  # pyright: ignore[reportUnknownVariableType] - as above


def masked(target: dict[str, Any], source: dict[str, Any], path: tuple[str, ...]) -> None:
    value = get(source, path)
    if value is None:
        parent = get(target, path[:-1])
        if isinstance(parent, dict):
            parent.pop(path[-1], None)
        return
    for name in path[:-1]:
        if not isinstance(target.get(name), dict):
            target[name] = {}
        target = target[name]
    target[path[-1]] = copy.deepcopy(value)


def distinct(paths: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Remove duplicate and overlapping paths, which a mask must not contain."""
    kept: list[tuple[str, ...]] = []
    for path in paths:
        if not any(path[: len(other)] == other or other[: len(path)] == path for other in kept):
            kept.append(path)
    return kept


@settings(deadline=None)
@given(DOCUMENTS, DOCUMENTS, st.lists(PATHS, max_size=4).map(distinct))
def test_mask_sets_or_removes_exactly_the_named_fields(
    target: dict[str, Any], source: dict[str, Any], paths: list[tuple[str, ...]]
) -> None:
    result = document(target)
    merge(result.fields, document(source).fields, parse_mask(".".join(path) for path in paths).paths)
    expected = copy.deepcopy(target)
    for path in sorted(paths):
        masked(expected, source, path)
    assert content_of(result) == expected


@settings(deadline=None)
@given(DOCUMENTS, st.lists(PATHS, max_size=4).map(distinct))
def test_projection_keeps_exactly_the_named_fields(content: dict[str, Any], paths: list[tuple[str, ...]]) -> None:
    expected: dict[str, Any] = {}
    for path in paths:
        if get(content, path) is not None:
            masked(expected, content, path)
    data = document(content).SerializeToString()
    assert content_of(project(data, paths)) == expected
    assert content_of(project(data, None)) == content


@settings(deadline=None)
@given(DOCUMENTS, PATHS)
def test_lookup_does_not_change_the_document(content: dict[str, Any], path: tuple[str, ...]) -> None:
    found = document(content)
    value = lookup(found.fields, path)
    assert (None if value is None else tree(value)) == get(content, path)
    assert content_of(found) == content


@settings(deadline=None)
@given(st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=4).map(tuple))
def test_field_paths_survive_quoting(path: tuple[str, ...]) -> None:
    assert parse_field_path(format_field_path(path)) == path


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", "1a", "a b", "`a", "`a`b", "a-b", "``", "x" * 1501])
def test_malformed_field_path_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument):
        parse_field_path(text)


@pytest.mark.parametrize("paths", [["__name__"], ["a", "__name__"], ["__x__"], ["a.__x__"]])
def test_mask_with_a_reserved_name_is_refused(paths: list[str]) -> None:
    with pytest.raises(InvalidArgument):
        parse_mask(paths)


@pytest.mark.parametrize("paths", [["a", "a"], ["a", "a.b"], ["a.b.c", "a.b"]])
def test_mask_with_overlapping_paths_is_sorted(paths: list[str]) -> None:
    assert parse_mask(paths).paths == tuple(sorted(tuple(path.split(".")) for path in paths))


@pytest.mark.parametrize(
    "name",
    ["", "projects/p", "projects/p/databases/d/documents", "projects/p/databases/d/documents/c", "x" * 7000]
    + ["projects//databases/d/documents/c/d", "projects/p/databases/d/documents/" + "/".join(["c" * 700, "d"] * 9)],
)
def test_malformed_document_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgument):
        check_document_name(name)


def test_size_of_a_name_follows_the_documentation() -> None:
    # The example of https://firebase.google.com/docs/firestore/storage-size: users/jeff/tasks/my_task_id.
    assert name_bytes("projects/p/databases/d/documents/users/jeff/tasks/my_task_id") == 6 + 5 + 6 + 11 + 16
