"""A query on a past state, in steps with commits in between, returns what it returned then."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from firelite.database import Database
from firelite.documents.protos import StructuredQuery, StructuredQueryPb, Value, Write
from firelite.documents.record import Record
from firelite.query.parse import parse_query
from firelite.query.query import Query
from firelite.query.slices import STEP_DOCUMENTS, at_once
from firelite.storage import versions
from firelite.storage.snapshot_scan import snapshot_steps

ROOT = "projects/p/databases/(default)/documents"
DOCUMENTS = 5 * STEP_DOCUMENTS


@pytest.fixture
def db() -> Iterator[Database]:
    with Database.open(None) as database:
        yield database


def write(db: Database, rng: random.Random, count: int) -> None:
    """Change, delete or add documents of two collections at random."""
    for _ in range(count):
        name = f"{ROOT}/{rng.choice(['c', 'c/x/c'])}/{rng.randrange(DOCUMENTS)}"
        message = Write(delete=name)
        if rng.random() < 0.7:
            message = Write()
            message.update.name = name
            message.update.fields["n"].CopyFrom(Value(integer_value=rng.randrange(10)))
            message.update.fields["m"].CopyFrom(Value(integer_value=rng.randrange(10)))
            tags = message.update.fields["tags"].array_value
            tags.values.extend(Value(integer_value=tag) for tag in rng.sample(range(4), 2))
        db.group.commit_now([message])


def query(build: Callable[[StructuredQueryPb], None], *, group: bool = False) -> Query:
    message = StructuredQuery()
    selector = message.from_.add(collection_id="c")
    selector.all_descendants = group
    build(message)
    return parse_query(ROOT, message)


def plain(_: StructuredQueryPb) -> None:
    pass


def ordered(message: StructuredQueryPb) -> None:
    message.order_by.add(direction=2).field.field_path = "n"
    message.offset = 3
    message.limit.value = 40


def filtered(message: StructuredQueryPb) -> None:
    """Two inequalities: the second one is tested on each document."""
    for field, number in (("n", 2), ("m", 5)):
        part = message.where.composite_filter.filters.add().field_filter
        part.field.field_path, part.op, part.value.integer_value = field, 3, number
    message.where.composite_filter.op = 1
    message.limit.value = 20


def any_tag(message: StructuredQueryPb) -> None:
    part = message.where.field_filter
    part.field.field_path, part.op = "tags", 9
    part.value.array_value.values.extend([Value(integer_value=1), Value(integer_value=2)])


QUERIES = [
    *(query(build) for build in (plain, ordered, filtered, any_tag)),
    *(query(build, group=True) for build in (plain, ordered, any_tag)),
]


def names(result: tuple[list[Record], int]) -> list[tuple[str, int]]:
    return [(record.name, record.update_us) for record in result[0]]


@pytest.mark.parametrize("number", range(len(QUERIES)))
@pytest.mark.parametrize("seed", range(5))
def test_commits_between_steps_do_not_change_the_result(db: Database, number: int, seed: int) -> None:
    rng = random.Random(seed)
    write(db, rng, 2 * DOCUMENTS)
    wanted, skipped = db.store.run(QUERIES[number])
    steps = snapshot_steps(db.store, QUERIES[number], db.clock.now())
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            assert names(finished.value) == names((wanted, 0))
            assert finished.value[1] == skipped
            return
        write(db, rng, rng.randrange(20))


def test_index_that_was_built_between_commits_is_complete(db: Database) -> None:
    rng = random.Random(7)
    write(db, rng, 2 * DOCUMENTS)
    for _ in db.store.all_index_steps(QUERIES[1]):
        write(db, rng, 20)
    indexed = names(db.store.run(QUERIES[1]))
    with Database.open(None) as other:
        other.store.load(db.store.everything())
        assert indexed == names(other.store.run(QUERIES[1]))


def test_two_queries_build_one_index_together(db: Database) -> None:
    write(db, random.Random(7), 3 * DOCUMENTS)
    one, other = (db.store.all_index_steps(QUERIES[0]) for _ in range(2))
    count = sum(1 for pair in zip(one, other, strict=False) for _ in pair)
    assert count <= db.store.live // STEP_DOCUMENTS + 3


def test_abandoned_build_is_continued(db: Database) -> None:
    write(db, random.Random(7), 3 * DOCUMENTS)
    steps = db.store.all_index_steps(QUERIES[1])
    next(steps)
    steps.close()
    write(db, random.Random(8), DOCUMENTS)
    with Database.open(None) as other:
        other.store.load(db.store.everything())
        assert names(db.store.run(QUERIES[1])) == names(other.store.run(QUERIES[1]))


def test_index_of_a_collection_emptied_during_the_build_is_empty(db: Database) -> None:
    write(db, random.Random(7), 3 * DOCUMENTS)
    steps = db.store.all_index_steps(QUERIES[0])
    next(steps)
    db.group.commit_now([Write(delete=record.name) for record in list(db.store.everything())])
    at_once(steps)
    assert db.store.run(QUERIES[0]) == ([], 0)


def test_history_is_kept_while_a_snapshot_is_read(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(7)
    write(db, rng, 2 * DOCUMENTS)
    wanted = names(db.store.run(QUERIES[0]))
    then = db.clock.now()
    steps = snapshot_steps(db.store, QUERIES[0], then)
    next(steps)
    monkeypatch.setattr(versions, "HISTORY_MAX_BYTES", 1000)
    write(db, rng, DOCUMENTS)
    assert names(at_once(steps)) == wanted
    write(db, rng, 1)
    assert db.store.horizon_us > then
