"""The RPCs of the gRPC server and the in-process client: names, messages and which side streams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from google.cloud.firestore_v1.types import document, firestore
from google.protobuf import empty_pb2


class _Empty:
    """google.protobuf.Empty with the two class methods of proto-plus that this package uses."""

    @staticmethod
    def pb() -> Any:
        return empty_pb2.Empty

    @staticmethod
    def wrap(message: Any) -> Any:
        return message


@dataclass(frozen=True, slots=True)
class Method:
    """One RPC; ``attribute`` names it in the service and in the client's transport."""

    rpc: str
    attribute: str
    request: Any
    response: Any
    streams_requests: bool = False
    streams_responses: bool = False


METHODS = (
    Method("GetDocument", "get_document", firestore.GetDocumentRequest, document.Document),
    Method("ListDocuments", "list_documents", firestore.ListDocumentsRequest, firestore.ListDocumentsResponse),
    Method("UpdateDocument", "update_document", firestore.UpdateDocumentRequest, document.Document),
    Method("DeleteDocument", "delete_document", firestore.DeleteDocumentRequest, _Empty),
    Method(
        "BatchGetDocuments",
        "batch_get_documents",
        firestore.BatchGetDocumentsRequest,
        firestore.BatchGetDocumentsResponse,
        streams_responses=True,
    ),
    Method(
        "BeginTransaction",
        "begin_transaction",
        firestore.BeginTransactionRequest,
        firestore.BeginTransactionResponse,
    ),
    Method("Commit", "commit", firestore.CommitRequest, firestore.CommitResponse),
    Method("Rollback", "rollback", firestore.RollbackRequest, _Empty),
    Method("RunQuery", "run_query", firestore.RunQueryRequest, firestore.RunQueryResponse, streams_responses=True),
    Method(
        "ExecutePipeline",
        "execute_pipeline",
        firestore.ExecutePipelineRequest,
        firestore.ExecutePipelineResponse,
        streams_responses=True,
    ),
    Method(
        "RunAggregationQuery",
        "run_aggregation_query",
        firestore.RunAggregationQueryRequest,
        firestore.RunAggregationQueryResponse,
        streams_responses=True,
    ),
    Method("PartitionQuery", "partition_query", firestore.PartitionQueryRequest, firestore.PartitionQueryResponse),
    Method(
        "Write",
        "write",
        firestore.WriteRequest,
        firestore.WriteResponse,
        streams_requests=True,
        streams_responses=True,
    ),
    Method(
        "Listen",
        "listen",
        firestore.ListenRequest,
        firestore.ListenResponse,
        streams_requests=True,
        streams_responses=True,
    ),
    Method(
        "ListCollectionIds",
        "list_collection_ids",
        firestore.ListCollectionIdsRequest,
        firestore.ListCollectionIdsResponse,
    ),
    Method("BatchWrite", "batch_write", firestore.BatchWriteRequest, firestore.BatchWriteResponse),
    Method("CreateDocument", "create_document", firestore.CreateDocumentRequest, document.Document),
)
