"""Cases: sequences of requests made from a seed and a number."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from conformance.differential.interleaving import interleaved_steps
from conformance.differential.queries import QueryMaker
from conformance.differential.steps import Step
from conformance.differential.values import NAMES, ValueMaker
from conformance.differential.writes import WriteMaker
from firelite.documents.protos import MessagePb

READS_PER_CASE = 5
CHANGES_PER_CASE = 4


@dataclass(frozen=True, slots=True)
class Case:
    """One case. The same seed and number make the same steps."""

    seed: int
    number: int
    kind: str
    steps: tuple[Step, ...]


def make_case(seed: int, number: int) -> Case:
    """Return a case: queries on fixed documents, changes that are read back, or interleaved transactions."""
    rng = Random(f"{seed}:{number}")
    values = ValueMaker(rng)
    writes = WriteMaker(values)
    setup = Step("Commit", writes.create_all(rng.sample(NAMES, rng.randrange(2, 12))))
    kind = rng.choices(("queries", "changes", "transactions"), (12, 6, 1))[0]
    if kind == "transactions":
        return Case(seed, number, kind, (setup, *interleaved_steps(values), read_back()))
    queries = QueryMaker(values)
    if kind == "queries":
        return Case(seed, number, kind, (setup, *(Step(*queries.read()) for _ in range(READS_PER_CASE))))
    changes = [Step(*writes.change()) for _ in range(rng.randrange(1, CHANGES_PER_CASE + 1))]
    reads = [Step(*queries.read()) for _ in range(2)]
    return Case(seed, number, kind, (setup, *changes, read_back(), *reads))


def read_back() -> Step:
    """Return the step that reads every document that a case may have written."""
    from conformance.differential.queries import BatchGetDocumentsRequest
    from conformance.differential.values import DATABASE, ROOT

    request: MessagePb = BatchGetDocumentsRequest(database=DATABASE, documents=[*NAMES, f"{ROOT}/c/new"])
    return Step("BatchGetDocuments", request)
