"""Writes that production refuses before it looks at any document, and several writes to one document."""

from __future__ import annotations

import math
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.firestore_v1.types import common, document, write

from conformance.raw import Raw

pytestmark = pytest.mark.anyio

Value = document.Value
Transform = write.DocumentTransform.FieldTransform
ONE = Value(integer_value=1)


def vector(coordinate: float) -> Value:
    coordinates = document.ArrayValue(values=[Value(double_value=coordinate)])
    fields = {"__type__": Value(string_value="__vector__"), "value": Value(array_value=coordinates)}
    return Value(map_value={"fields": fields})


MISSING = common.Precondition(exists=False)
EXISTING = common.Precondition(exists=True)


def put(raw: Raw, value: Value = ONE, **options: Any) -> write.Write:
    content = document.Document(name=raw.name("c/d"), fields={"a": value})
    return write.Write(update=content, **options)


def delete(raw: Raw, **options: Any) -> write.Write:
    return write.Write(delete=raw.name("c/d"), **options)


async def commit(raw: Raw, *writes: write.Write) -> Any:
    return await raw.api.commit(request={"database": raw.database, "writes": list(writes)})


@pytest.mark.parametrize(
    "value",
    [
        Value(),
        Value(array_value=document.ArrayValue(values=[vector(1.0)])),
        Value(timestamp_value={"seconds": 253_402_300_800}),
        Value(timestamp_value={"seconds": -62_135_596_801}),
        Value(timestamp_value={"nanos": 1_000_000_000}),
        Value(reference_value="x"),
        Value(reference_value="projects/p/databases/d/documents/c"),
        Value(map_value={"fields": {"__reserved__": ONE}}),
    ],
)
async def test_value_that_cannot_be_stored_is_invalid_outside_the_mask_too(raw: Raw, value: Value) -> None:
    for mask in (None, common.DocumentMask(field_paths=["b"])):
        with pytest.raises(exceptions.InvalidArgument):
            await commit(raw, put(raw, value, update_mask=mask))


async def test_vector_with_nan_is_invalid(raw: Raw) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        await commit(raw, put(raw, vector(math.nan)))


async def test_vector_with_nan_ends_the_whole_batch(raw: Raw) -> None:
    selected = common.DocumentMask(field_paths=["a"])
    for faulty in (put(raw, vector(math.nan)), put(raw, vector(math.nan), update_mask=selected)):
        writes = [write.Write(update=raw.document("c/e", a=1)), faulty]
        with pytest.raises(exceptions.InvalidArgument):
            await raw.api.batch_write(request={"database": raw.database, "writes": writes}, metadata=raw.admin)
    with pytest.raises(exceptions.NotFound):
        await raw.api.get_document(request={"name": raw.name("c/e")})


async def test_vector_with_nan_that_a_transform_replaces_is_invalid(raw: Raw) -> None:
    stamp = Transform(field_path="a", set_to_server_value="REQUEST_TIME")
    with pytest.raises(exceptions.InvalidArgument):
        await commit(raw, put(raw, vector(math.nan), update_transforms=[stamp]))


async def test_vector_with_nan_outside_the_mask_is_ignored(raw: Raw) -> None:
    await commit(raw, put(raw, vector(math.nan), update_mask=common.DocumentMask(field_paths=["b"])))
    found = await raw.api.get_document(request={"name": raw.name("c/d")})
    assert not found.fields


async def test_invalid_write_wins_over_a_precondition_that_fails(raw: Raw) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        await commit(raw, put(raw, current_document=EXISTING), put(raw, Value()))
    writes = [put(raw), write.Write(update=raw.document("c/e"), update_transforms=[Transform(field_path="a")])]
    with pytest.raises(exceptions.InvalidArgument):
        await raw.api.batch_write(request={"database": raw.database, "writes": writes}, metadata=raw.admin)
    with pytest.raises(exceptions.NotFound):
        await raw.api.get_document(request={"name": raw.name("c/d")})


@pytest.mark.parametrize(
    "options",
    [
        {"update_transforms": [Transform(field_path="m", increment=ONE), Transform(field_path="m.x", increment=ONE)]},
        {"update_mask": common.DocumentMask(field_paths=["__x__.a"])},
        {"update_mask": common.DocumentMask(field_paths=["a.__x__"])},
    ],
)
async def test_nested_transforms_and_reserved_names_in_masks_are_invalid(raw: Raw, options: dict[str, Any]) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        await commit(raw, put(raw, **options))


async def test_delete_with_a_mask_or_a_transform_is_invalid(raw: Raw) -> None:
    for options in (
        {"update_mask": common.DocumentMask(field_paths=["a"])},
        {"update_transforms": [Transform(field_path="a", increment=ONE)]},
    ):
        with pytest.raises(exceptions.InvalidArgument):
            await commit(raw, delete(raw, **options))


async def test_transform_write_without_transforms_is_invalid(raw: Raw) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        await commit(raw, write.Write(transform=write.DocumentTransform(document=raw.name("c/d"))))


async def test_mask_with_overlapping_paths_is_applied(raw: Raw) -> None:
    await commit(raw, put(raw, update_mask=common.DocumentMask(field_paths=["a.b", "a", "a"])))
    found = await raw.api.get_document(request={"name": raw.name("c/d")})
    assert found.fields == {"a": ONE}


async def test_writes_to_one_document_that_contradict_are_invalid(raw: Raw) -> None:
    first = await commit(raw, put(raw))
    time = common.Precondition(update_time=first.write_results[0].update_time)
    for writes in (
        [put(raw), put(raw, current_document=MISSING)],
        [delete(raw), put(raw, current_document=EXISTING)],
        [delete(raw), delete(raw, current_document=EXISTING)],
        [put(raw), put(raw, current_document=time)],
    ):
        with pytest.raises(exceptions.InvalidArgument):
            await commit(raw, *writes)


async def test_writes_to_one_document_can_require_the_same_update_time(raw: Raw) -> None:
    first = await commit(raw, put(raw))
    time = common.Precondition(update_time=first.write_results[0].update_time)
    second = put(raw, Value(integer_value=2), current_document=time)
    third = put(raw, Value(integer_value=3), current_document=time)
    await commit(raw, second, third)
    assert (await raw.api.get_document(request={"name": raw.name("c/d")})).fields["a"].integer_value == 3
    with pytest.raises(exceptions.FailedPrecondition):
        await commit(raw, second, third)


async def test_writes_to_one_document_have_the_time_of_the_last_one(raw: Raw) -> None:
    recreated = await commit(raw, delete(raw), put(raw))
    assert [result.update_time for result in recreated.write_results] == [recreated.commit_time] * 2
    deleted = await commit(raw, put(raw, Value(integer_value=2)), delete(raw))
    assert ["update_time" in result for result in deleted.write_results] == [False, False]


@pytest.mark.parametrize("key", ["____", "___", "__id7__", "__id-9223372036854775808__"])
async def test_id_that_is_not_reserved_is_accepted(raw: Raw, key: str) -> None:
    made = await raw.api.update_document(request={"document": raw.document(f"c/{key}", n=1)})
    assert made.name == raw.name(f"c/{key}")


@pytest.mark.parametrize("key", ["__x__", "_____", "__id__", "__idx__", "__id9223372036854775808__"])
async def test_reserved_id_is_invalid(raw: Raw, key: str) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        await raw.api.update_document(request={"document": raw.document(f"c/{key}", n=1)})


async def test_update_time_of_the_first_write_is_compared_with_those_of_all_later_ones(raw: Raw) -> None:
    await commit(raw, put(raw))
    stored = await raw.api.get_document(request={"name": raw.name("c/d")})
    same = common.Precondition(update_time=stored.update_time)
    other = common.Precondition(update_time={"seconds": 1})
    for writes in (
        [put(raw), put(raw, current_document=same)],
        [put(raw, current_document=same), put(raw, current_document=other)],
    ):
        with pytest.raises(exceptions.InvalidArgument):
            await commit(raw, *writes)
    with pytest.raises(exceptions.FailedPrecondition):
        await commit(raw, put(raw, current_document=other), put(raw), put(raw, current_document=other))
    await commit(raw, put(raw, current_document=same), put(raw), put(raw, current_document=same))


@pytest.mark.parametrize("between", ["nothing", "delete", "update", "missing"])
async def test_delete_repeated_with_the_first_update_time_succeeds(raw: Raw, between: str) -> None:
    [created] = (await commit(raw, put(raw))).write_results
    moment = common.Precondition(update_time=created.update_time)
    middle = {
        "nothing": [],
        "delete": [delete(raw)],
        "update": [put(raw)],
        "missing": [delete(raw, current_document=MISSING)],
    }
    deletes = [delete(raw, current_document=moment) for _ in range(2)]
    await commit(raw, deletes[0], *middle[between], deletes[1])
    with pytest.raises(exceptions.NotFound):
        await raw.api.get_document(request={"name": raw.name("c/d")})


async def test_delete_with_an_update_time_after_a_delete_without_one_is_invalid(raw: Raw) -> None:
    [created] = (await commit(raw, put(raw))).write_results
    moment = common.Precondition(update_time=created.update_time)
    for first in (delete(raw), delete(raw, current_document=EXISTING)):
        with pytest.raises(exceptions.InvalidArgument):
            await commit(raw, first, delete(raw, current_document=moment))
