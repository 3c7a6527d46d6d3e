"""The raw protobuf messages of google.firestore.v1, from the official client's package.

The engine works on these upb messages and not on the proto-plus wrappers, which are ten times slower to access. Their
classes are created at run time and are invisible to a type checker. The type names below are aliases of ``Any`` that
document which message a function takes.
"""

from __future__ import annotations

from typing import Any

from google.cloud.firestore_v1.types import aggregation_result, common, document, firestore, query, query_profile, write
from google.rpc import status_pb2

type DocumentPb = Any
type ValuePb = Any
type FieldsPb = Any  # map<string, Value>
type WritePb = Any
type WriteResultPb = Any
type PreconditionPb = Any
type StructuredQueryPb = Any
type FilterPb = Any
type CursorPb = Any
type TargetPb = Any
type MessagePb = Any  # any request or response
type TimestampPb = Any

Document: Any = document.Document.pb()
DocumentMask: Any = common.DocumentMask.pb()
Value: Any = document.Value.pb()
ArrayValue: Any = document.ArrayValue.pb()
MapValue: Any = document.MapValue.pb()
Write: Any = write.Write.pb()
WriteResult: Any = write.WriteResult.pb()
Precondition: Any = common.Precondition.pb()
TransactionOptions: Any = common.TransactionOptions.pb()
StructuredQuery: Any = query.StructuredQuery.pb()
ExplainMetrics: Any = query_profile.ExplainMetrics.pb()
Cursor: Any = query.Cursor.pb()
AggregationResult: Any = aggregation_result.AggregationResult.pb()

BatchGetDocumentsResponse: Any = firestore.BatchGetDocumentsResponse.pb()
BatchWriteResponse: Any = firestore.BatchWriteResponse.pb()
BeginTransactionResponse: Any = firestore.BeginTransactionResponse.pb()
CommitResponse: Any = firestore.CommitResponse.pb()
ListCollectionIdsResponse: Any = firestore.ListCollectionIdsResponse.pb()
ListDocumentsResponse: Any = firestore.ListDocumentsResponse.pb()
ListenRequest: Any = firestore.ListenRequest.pb()
ListenResponse: Any = firestore.ListenResponse.pb()
PartitionQueryResponse: Any = firestore.PartitionQueryResponse.pb()
RunAggregationQueryResponse: Any = firestore.RunAggregationQueryResponse.pb()
RunQueryResponse: Any = firestore.RunQueryResponse.pb()
TargetChange: Any = firestore.TargetChange.pb()
WriteResponse: Any = firestore.WriteResponse.pb()
Status: Any = status_pb2.Status

FieldOperator = query.StructuredQuery.FieldFilter.Operator
UnaryOperator = query.StructuredQuery.UnaryFilter.Operator
CompositeOperator = query.StructuredQuery.CompositeFilter.Operator
DistanceMeasure = query.StructuredQuery.FindNearest.DistanceMeasure
Direction = query.StructuredQuery.Direction
TargetChangeType = firestore.TargetChange.TargetChangeType


def set_time(timestamp: TimestampPb, micros: int) -> None:
    """Write a time in microseconds since 1970 into a Timestamp message."""
    seconds, rest = divmod(micros, 1_000_000)
    timestamp.seconds = seconds
    timestamp.nanos = rest * 1000


def micros_of(timestamp: TimestampPb) -> int:
    """Return a Timestamp message as microseconds since 1970, rounded down like in Firestore."""
    return timestamp.seconds * 1_000_000 + timestamp.nanos // 1000
