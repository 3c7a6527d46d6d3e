"""Two transactions and a plain writer whose requests alternate."""

from __future__ import annotations

from google.cloud.firestore_v1.types import firestore

from conformance.differential.queries import BatchGetDocumentsRequest, RunQueryRequest
from conformance.differential.steps import Step
from conformance.differential.values import DATABASE, NAMES, ROOT, ValueMaker
from conformance.differential.writes import CommitRequest
from firelite.documents.protos import Write, WritePb

BeginTransactionRequest = firestore.BeginTransactionRequest.pb()
RollbackRequest = firestore.RollbackRequest.pb()
CONTENDED = NAMES[:3]


def interleaved_steps(values: ValueMaker) -> list[Step]:
    """Return the steps of transactions A and B, and sometimes of a writer outside them, in a random order."""
    rng = values.rng
    queues = [_transaction("A", values), _transaction("B", values)]
    if rng.random() < 0.4:
        queues.append([Step("Commit", CommitRequest(database=DATABASE, writes=[_write(values)]))])
    steps: list[Step] = []
    while queues:
        queue = rng.choice(queues)
        steps.append(queue.pop(0))
        if not queue:
            queues.remove(queue)
    return steps


def _transaction(actor: str, values: ValueMaker) -> list[Step]:
    rng = values.rng
    begin = BeginTransactionRequest(database=DATABASE)
    if rng.random() < 0.15:
        begin.options.read_only.SetInParent()
    else:
        begin.options.read_write.SetInParent()
    steps = [Step("BeginTransaction", begin, actor)]
    for _ in range(rng.randrange(3)):
        if rng.random() < 0.95:
            read = BatchGetDocumentsRequest(database=DATABASE, documents=rng.sample(CONTENDED, rng.randrange(1, 3)))
            steps.append(Step("BatchGetDocuments", read, actor))
        else:
            query = RunQueryRequest(parent=ROOT)
            query.structured_query.from_.add(collection_id="c")
            query.structured_query.limit.value = rng.randrange(1, 4)
            steps.append(Step("RunQuery", query, actor))
    if rng.random() < 0.15:
        steps.append(Step("Rollback", RollbackRequest(database=DATABASE), actor))
    else:
        writes = [_write(values) for _ in range(rng.randrange(3))]
        steps.append(Step("Commit", CommitRequest(database=DATABASE, writes=writes), actor))
    return steps


def _write(values: ValueMaker) -> WritePb:
    write = Write()
    write.update.name = values.rng.choice(CONTENDED)
    write.update.fields["a"].CopyFrom(values.number())
    return write
