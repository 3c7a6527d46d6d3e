"""Field transforms and their results."""

from __future__ import annotations

import math
from typing import Any

import pytest
from google.api_core.exceptions import InvalidArgument
from google.cloud.firestore import (
    SERVER_TIMESTAMP,
    ArrayRemove,
    ArrayUnion,
    AsyncClient,
    Increment,
    Maximum,
    Minimum,
)

pytestmark = pytest.mark.anyio


@pytest.mark.quirk("milliseconds_of_server_times")
async def test_a_server_timestamp_is_the_commit_time(client: AsyncClient) -> None:
    ref = client.document("c/d")
    result = await ref.set({"at": SERVER_TIMESTAMP, "n": 1})
    assert (await ref.get()).to_dict() == {"at": result.update_time, "n": 1}


async def test_two_server_timestamps_in_one_commit_are_equal(client: AsyncClient) -> None:
    batch = client.batch()
    batch.set(client.document("c/a"), {"at": SERVER_TIMESTAMP, "deep": {"at": SERVER_TIMESTAMP}})
    batch.set(client.document("c/b"), {"at": SERVER_TIMESTAMP})
    await batch.commit()
    a, b = await client.document("c/a").get(), await client.document("c/b").get()
    assert a.get("at") == a.get("deep.at") == b.get("at")


@pytest.mark.parametrize(
    ("before", "transform", "after"),
    [
        (1, Increment(2), 3),
        (1, Increment(0.5), 1.5),
        (1.5, Increment(1), 2.5),
        ("text", Increment(7), 7),
        (2**63 - 1, Increment(1), 2**63 - 1),
        (-(2**63), Increment(-1), -(2**63)),
        (3, Maximum(5), 5),
        (5, Maximum(3), 5),
        ("text", Maximum(3), 3),
        (3.5, Minimum(3), 3),
        (3, Minimum(3.5), 3),
        (None, Minimum(1), 1),
        ([1], ArrayUnion([1, 2, 2]), [1, 2]),
        ([1, 1], ArrayUnion([1.0]), [1, 1]),
        ("text", ArrayUnion(["a"]), ["a"]),
        ([1, 2, 1, "x"], ArrayRemove([1, "y"]), [2, "x"]),
        ("text", ArrayRemove([1]), []),
        ([{"a": 1}, {"a": 2}], ArrayRemove([{"a": 1.0}]), [{"a": 2}]),
    ],
)
async def test_transform_changes_the_value_as_documented(
    client: AsyncClient, before: Any, transform: Any, after: Any
) -> None:
    ref = client.document("c/d")
    await ref.set({"f": before})
    await ref.update({"f": transform})
    stored = (await ref.get()).get("f")
    assert stored == after
    assert type(stored) is type(after)


async def test_numerically_equal_operands_leave_the_field_unchanged(client: AsyncClient) -> None:
    ref = client.document("c/d")
    await ref.set({"max": 3, "min": 3})
    await ref.update({"max": Maximum(3.0), "min": Minimum(3.0)})
    stored = (await ref.get()).to_dict() or {}
    assert [type(stored["max"]), type(stored["min"])] == [int, int]


async def test_maximum_with_nan_is_nan(client: AsyncClient) -> None:
    ref = client.document("c/d")
    await ref.set({"f": 3})
    await ref.update({"f": Maximum(math.nan)})
    assert math.isnan((await ref.get()).get("f"))


async def test_transforms_work_on_missing_and_nested_fields(client: AsyncClient) -> None:
    ref = client.document("c/d")
    await ref.set({"keep": 1})
    await ref.update({"a.count": Increment(1), "a.list": ArrayUnion([1]), "high": Maximum(4)})
    assert (await ref.get()).to_dict() == {"keep": 1, "a": {"count": 1, "list": [1]}, "high": 4}


async def test_set_with_only_a_transform_creates_the_document(client: AsyncClient) -> None:
    ref = client.document("c/d")
    await ref.set({"n": Increment(3)}, merge=True)
    assert (await ref.get()).to_dict() == {"n": 3}


async def test_transform_results_are_returned_per_transform(client: AsyncClient) -> None:
    batch = client.batch()
    batch.set(client.document("c/d"), {"n": Increment(3), "list": ArrayUnion([1])})
    results: Any = await batch.commit()
    values = [value._pb.WhichOneof("value_type") for value in results[0].transform_results]
    assert sorted(values) == ["integer_value", "null_value"]


async def test_transforms_apply_after_the_update_of_the_same_write(client: AsyncClient) -> None:
    ref = client.document("c/d")
    await ref.set({"n": 1, "other": 1})
    await ref.update({"other": 2, "n": Increment(1)})
    assert (await ref.get()).to_dict() == {"n": 2, "other": 2}


async def test_commit_may_hold_many_transforms_of_several_documents(client: AsyncClient) -> None:
    """The limit of 500 holds for one document, so a plan of 400 tasks with two server times each is one commit."""
    batch = client.batch()
    for number in range(400):
        batch.set(client.document(f"c/{number}"), {"created_at": SERVER_TIMESTAMP, "updated_at": SERVER_TIMESTAMP})
    assert len(await batch.commit()) == 400


async def test_501_transforms_of_one_document_are_refused(lite: AsyncClient) -> None:
    """Firestore's documented limit; Google's emulator does not enforce it."""
    with pytest.raises(InvalidArgument, match="at most 500 field transforms to a document"):
        await lite.document("c/d").set({f"f{number}": SERVER_TIMESTAMP for number in range(501)})
