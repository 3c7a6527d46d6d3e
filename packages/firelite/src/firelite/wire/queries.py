"""RunQuery with vector search and explain."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from time import perf_counter

from firelite.database import Consistency, Database
from firelite.documents.fields import project
from firelite.documents.protos import Document, DocumentPb, MessagePb, RunQueryResponse, set_time
from firelite.documents.record import Record
from firelite.query.explain import add_stats, explain
from firelite.query.nearest import Nearest, Neighbor, nearest_steps, parse_nearest
from firelite.query.parse import parse_query
from firelite.query.query import Query
from firelite.query.slices import STEP_DOCUMENTS, in_slices
from firelite.transactions.transactions import Transaction


class RunningQuery:
    """One RunQuery request: parsed and checked, then run."""

    def __init__(self, database: Database, request: MessagePb) -> None:
        """Parse the query. Raises InvalidArgument, or FailedPrecondition for a missing index."""
        message = request.structured_query
        self._database = database
        self._explains = request.HasField("explain_options")
        self.runs = not self._explains or request.explain_options.analyze
        self.search = parse_nearest(message) if message.HasField("find_nearest") else None
        self.query = parse_query(request.parent, message, vector_search=self.search is not None)
        database.check_query(self.query, search=None if self.search is None else self.search.field)

    def plan(self) -> MessagePb:
        """Return the response to a query that is explained but not run."""
        return RunQueryResponse(explain_metrics=explain(self.query, self.search))

    async def responses(self, consistency: Consistency, opened: Transaction | None) -> AsyncGenerator[MessagePb]:
        """Run the query and yield its responses, the metrics last."""
        began = perf_counter()
        records, skipped, read_us = await self._database.run_query(self.query, consistency)
        reads = len(records) + skipped
        found: Sequence[Record | Neighbor] = records
        if self.search is not None:
            found = await in_slices(nearest_steps(self.search, records))
            reads = len(found)
        seconds = perf_counter() - began
        if opened is not None:
            yield RunQueryResponse(transaction=opened.id)
        if skipped or not found:
            response = RunQueryResponse(skipped_results=skipped)
            set_time(response.read_time, read_us)
            yield response
        for number, item in enumerate(found, start=1):
            if number % STEP_DOCUMENTS == 0:
                await asyncio.sleep(0)
            response = RunQueryResponse()
            set_time(response.read_time, read_us)
            _add_document(response, item, self.query, self.search)
            yield response
        if self._explains:
            metrics = explain(self.query, self.search)
            add_stats(metrics, results=len(found), reads=reads, seconds=seconds)
            yield RunQueryResponse(explain_metrics=metrics)


def _add_document(response: MessagePb, item: Record | Neighbor, query: Query, search: Nearest | None) -> None:
    if isinstance(item, Neighbor):
        assert search is not None
        response.document.CopyFrom(_with_distance(item, query, search))
    elif query.projection is None:
        response.document.MergeFromString(item.data)
    else:
        response.document.CopyFrom(project(item.data or b"", query.projection))


def _with_distance(item: Neighbor, query: Query, search: Nearest) -> DocumentPb:
    """Return the document with its distance. With a selection of fields, the distance's field must be selected too."""
    document = Document.FromString(item.record.data or b"")
    if search.result_field:
        document.fields[search.result_field].double_value = item.distance
    return document if query.projection is None else project(document.SerializeToString(), query.projection)
