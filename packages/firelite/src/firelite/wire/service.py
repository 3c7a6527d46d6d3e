"""The Firestore RPCs over protobuf messages; ``server`` and ``inprocess`` provide the transport.

Every method takes the request message, returns the response message (or an async iterator of them), and raises
FireliteError.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from time import perf_counter

from firelite.database import Consistency, Database
from firelite.documents.fields import project
from firelite.documents.limits import REQUEST_MAX_BYTES
from firelite.documents.paths import (
    FieldPath,
    check_document_name,
    check_parent,
    check_segment,
    parse_field_path,
)
from firelite.documents.protos import (
    BatchGetDocumentsResponse,
    BatchWriteResponse,
    BeginTransactionResponse,
    Document,
    DocumentPb,
    ListCollectionIdsResponse,
    ListDocumentsResponse,
    MessagePb,
    PartitionQueryResponse,
    Precondition,
    RunAggregationQueryResponse,
    Write,
    WritePb,
    WriteResponse,
    micros_of,
    set_time,
)
from firelite.documents.record import Record
from firelite.documents.write_rules import check_writes
from firelite.errors import FireliteError, InvalidArgument, NotFound, Unimplemented
from firelite.listen.watch import ListenStream
from firelite.query import aggregate
from firelite.query.explain import add_stats, explain
from firelite.query.parse import parse_query
from firelite.query.slices import in_slices
from firelite.status import CODES
from firelite.storage.commit import written_names
from firelite.storage.group_commit import Outcome
from firelite.transactions.transactions import Transaction
from firelite.wire import listing, past_listing
from firelite.wire.queries import RunningQuery

AUTO_ID_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
ENTRIES_PER_READ = 1000  # one billed read of an aggregation covers this many index entries
AUTO_ID_LENGTH = 20  # the default of all official clients


class Service:
    """The RPCs of google.firestore.v1.Firestore on one database file."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def commit(self, request: MessagePb) -> MessagePb:
        """Commit: all writes or none."""
        _check_size(request)
        names = written_names(request.writes)
        _check_database(request, names)
        outcome = await self.database.commit(request.writes, request.transaction, names)
        return outcome.response

    async def batch_write(self, request: MessagePb) -> MessagePb:
        """BatchWrite: each write separately, with one status per write."""
        _check_size(request)
        names = written_names(request.writes)
        _check_database(request, names)
        check_writes(request.writes, names)
        return _batch_response(await listing.write_each(self.database, request.writes))

    def batch_write_now(self, request: MessagePb) -> MessagePb:
        """BatchWrite for a caller that blocks the event loop: locked documents are ABORTED at once."""
        _check_size(request)
        listing.check_distinct(request.writes)
        return _batch_response(self.database.commit_each_now(request.writes))

    async def begin_transaction(self, request: MessagePb) -> MessagePb:
        """BeginTransaction."""
        return BeginTransactionResponse(transaction=self._begin(request.options).id)

    async def rollback(self, request: MessagePb) -> None:
        """Rollback."""
        self.database.transactions.rollback(request.transaction)

    async def get_document(self, request: MessagePb) -> DocumentPb:
        """GetDocument. Raises NotFound, unlike BatchGetDocuments."""
        consistency, _ = self._consistency(request)
        name = check_document_name(request.name)
        records, _ = await self.database.get_many([name], consistency)
        if records[0] is None:
            raise NotFound(f"Document not found: {name}")
        return project(_data(records[0]), _mask(request))

    async def batch_get_documents(self, request: MessagePb) -> AsyncIterator[MessagePb]:
        """BatchGetDocuments: one response per document, found or missing."""
        consistency, opened = self._consistency(request)
        names = list(dict.fromkeys(check_document_name(name) for name in request.documents))
        _check_database(request, names)
        mask = _mask(request)
        records, read_us = await self.database.get_many(names, consistency)
        if opened is not None:
            yield BatchGetDocumentsResponse(transaction=opened.id)
        for name, record in zip(names, records, strict=True):
            response = BatchGetDocumentsResponse()
            set_time(response.read_time, read_us)
            if record is None:
                response.missing = name
            elif mask is None:
                response.found.MergeFromString(record.data)
            else:
                response.found.CopyFrom(project(_data(record), mask))
            yield response

    async def run_query(self, request: MessagePb) -> AsyncIterator[MessagePb]:
        """RunQuery."""
        if request.WhichOneof("query_type") is None:
            raise InvalidArgument("RunQuery needs a structured_query.")
        running = RunningQuery(self.database, request)
        if not running.runs:
            yield running.plan()
            return
        async with aclosing(running.responses(*self._consistency(request))) as responses:
            async for response in responses:
                yield response

    async def run_aggregation_query(self, request: MessagePb) -> AsyncIterator[MessagePb]:
        """RunAggregationQuery."""
        message = request.structured_aggregation_query
        names = aggregate.aliases(message.aggregations)
        fields = aggregate.aggregated_fields(message.aggregations)
        if fields and message.structured_query.HasField("select"):
            raise InvalidArgument("An aggregation of fields cannot be combined with a projection.")
        query = parse_query(request.parent, message.structured_query, fields)
        self.database.check_query(query)
        explains = request.HasField("explain_options")
        if explains and not request.explain_options.analyze:
            yield RunAggregationQueryResponse(explain_metrics=explain(query))
            return
        consistency, opened = self._consistency(request)
        began = perf_counter()
        total = None
        if consistency == Consistency() and aggregate.only_counts(message.aggregations):
            total = await self.database.count(query)
        if total is not None:
            read_us = self.database.clock.now()
            scanned = total
            values = [aggregate.count_result(aggregation, total) for aggregation in message.aggregations]
        else:
            records, _, read_us = await self.database.run_query(query, consistency)
            scanned = len(records)
            values = await in_slices(aggregate.aggregate_steps(list(message.aggregations), records))
        response = RunAggregationQueryResponse()
        if opened is not None:
            response.transaction = opened.id
        set_time(response.read_time, read_us)
        for alias, value in zip(names, values, strict=True):
            response.result.aggregate_fields[alias].CopyFrom(value)
        yield response
        if explains:
            metrics = explain(query)
            reads = -(-scanned // ENTRIES_PER_READ)
            add_stats(metrics, results=1, reads=reads, seconds=perf_counter() - began)
            yield RunAggregationQueryResponse(explain_metrics=metrics)

    async def partition_query(self, request: MessagePb) -> MessagePb:
        """PartitionQuery: cursors that divide a collection group into parts of about the same size."""
        if request.WhichOneof("query_type") is None:
            raise InvalidArgument("PartitionQuery needs a structured_query.")
        query = parse_query(request.parent, request.structured_query)
        self.database.check_query(query)
        consistency, _ = self._consistency(request)
        records, _, _ = await self.database.run_query(query, consistency)
        cursors, token = listing.partition(query, records, request)
        return PartitionQueryResponse(partitions=cursors, next_page_token=token)

    async def list_documents(self, request: MessagePb) -> MessagePb:
        """ListDocuments: a page of a collection, with missing documents on request."""
        check_parent(request.parent)
        consistency, _ = self._consistency(request)
        mask = _mask(request)
        documents, token = await listing.list_documents(self.database, request, consistency, mask)
        return ListDocumentsResponse(documents=documents, next_page_token=token)

    async def list_collection_ids(self, request: MessagePb) -> MessagePb:
        """ListCollectionIds: a page of the collections under a document or the root."""
        self.database.check_open()
        check_parent(request.parent)
        consistency, _ = self._consistency(request)
        if consistency.read_us is None:
            ids = self.database.store.tree.collection_ids(request.parent)
        else:
            ids = past_listing.collection_ids_at(self.database.store, request.parent, consistency.read_us)
        entries = [(collection_id.encode(), collection_id) for collection_id in ids]
        page, token = listing.page(entries, request.page_size, request.page_token)
        return ListCollectionIdsResponse(collection_ids=page, next_page_token=token)

    async def create_document(self, request: MessagePb) -> DocumentPb:
        """CreateDocument: with the given id, or a random one."""
        check_parent(request.parent)
        check_segment(request.collection_id, request.parent)
        document_id = request.document_id or "".join(secrets.choice(AUTO_ID_LETTERS) for _ in range(AUTO_ID_LENGTH))
        write = Write(current_document=Precondition(exists=False))
        write.update.CopyFrom(request.document)
        write.update.name = f"{request.parent}/{request.collection_id}/{document_id}"
        return await self._write_one(write, request)

    async def update_document(self, request: MessagePb) -> DocumentPb:
        """UpdateDocument: with a mask, change only its fields; without a mask, replace the document."""
        write = Write()
        write.update.CopyFrom(request.document)
        if request.HasField("update_mask"):
            write.update_mask.CopyFrom(request.update_mask)
        if request.HasField("current_document"):
            write.current_document.CopyFrom(request.current_document)
        return await self._write_one(write, request)

    async def delete_document(self, request: MessagePb) -> None:
        """DeleteDocument."""
        write = Write(delete=request.name)
        if request.HasField("current_document"):
            write.current_document.CopyFrom(request.current_document)
        await self.database.commit([write])

    async def execute_pipeline(self, request: MessagePb) -> AsyncIterator[MessagePb]:
        """ExecutePipeline: not supported, belongs to Firestore Enterprise edition."""
        raise Unimplemented("firelite does not implement pipelines (ExecutePipeline).")
        yield request  # makes this a generator, like the other streaming methods

    async def listen(self, requests: AsyncIterator[MessagePb]) -> AsyncIterator[MessagePb]:
        """Listen: changes to documents and queries, until the client closes its side."""
        async with aclosing(ListenStream(self.database.hub).responses(requests)) as responses:
            async for response in responses:
                yield response

    async def write(self, requests: AsyncIterator[MessagePb]) -> AsyncIterator[MessagePb]:
        """Write: a stream of commits, each answered in order. The first request only opens the stream."""
        stream_id = secrets.token_hex(8)
        served = 0
        async for request in requests:
            response = WriteResponse(stream_id=stream_id, stream_token=str(served).encode())
            if served or request.writes:
                _check_size(request)
                outcome = await self.database.commit(request.writes)
                response.write_results.extend(outcome.results)
                response.commit_time.CopyFrom(outcome.response.commit_time)
            served += 1
            yield response

    async def _write_one(self, write: WritePb, request: MessagePb) -> DocumentPb:
        _check_size(request)
        mask = _mask(request)
        await self.database.commit([write])
        record = self.database.store.get(write.update.name)
        return project(_data(record), mask) if record is not None else Document()

    def _begin(self, options: MessagePb) -> Transaction:
        if options.HasField("read_only"):
            chosen = options.read_only.WhichOneof("consistency_selector") is not None
            read_us = micros_of(options.read_only.read_time) if chosen else None
            return self.database.begin(read_only=True, read_us=read_us)
        return self.database.begin(retry_of=options.read_write.retry_transaction)

    def _consistency(self, request: MessagePb) -> tuple[Consistency, Transaction | None]:
        """Return the consistency of a request, and the transaction that it opens, if any."""
        kind = request.WhichOneof("consistency_selector")
        if kind == "transaction":
            return Consistency(transaction=self.database.transactions.get(request.transaction)), None
        if kind == "new_transaction":
            opened = self._begin(request.new_transaction)
            return Consistency(transaction=opened), opened
        if kind == "read_time":
            return Consistency(read_us=self.database.check_read_us(micros_of(request.read_time))), None
        return Consistency(), None


def _batch_response(outcomes: Sequence[Outcome | FireliteError]) -> MessagePb:
    response = BatchWriteResponse()
    for outcome in outcomes:
        if isinstance(outcome, FireliteError):
            response.write_results.add()
            response.status.add(code=CODES[outcome.code], message=outcome.message)
        else:
            response.write_results.append(outcome.results[0])
            response.status.add()
    return response


def _mask(request: MessagePb) -> Sequence[FieldPath] | None:
    return [parse_field_path(path) for path in request.mask.field_paths] if request.HasField("mask") else None


def _data(record: Record) -> bytes:
    return record.data or b""


def _check_size(request: MessagePb) -> None:
    size = request.ByteSize()
    if size > REQUEST_MAX_BYTES:
        raise InvalidArgument(f"The request has {size:,} bytes; at most {REQUEST_MAX_BYTES:,} are allowed.")


def _check_database(request: MessagePb, names: Sequence[str]) -> None:
    prefix = request.database + "/documents/"
    for name in names:
        if not name.startswith(prefix):
            raise InvalidArgument(f"Document {name!r} is not in the database {request.database!r} of the request.")
