"""Every known difference between Google's emulator and production, by name.

The conformance tests and the differential test look a quirk up by its name. A difference that is not in this table is
a defect of firelite. Behavior of the emulator was measured; that of production is from Google's documentation where
a reason names a source, and was not measured.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Quirk:
    """One difference: the emulator's behavior, production's, and the source for the latter."""

    name: str
    emulator: str
    production: str
    reason: str
    always: bool = True
    """False if the difference depends on timing."""


_TABLE = (
    Quirk(
        "message_texts",
        "The texts of errors describe a path as a protocol buffer, or do not name the document.",
        "The texts name the document.",
        "Texts of errors are not part of the API; firelite names the document for its users.",
    ),
    Quirk(
        "listener_resets",
        "A query's listener sends RESET, the whole result and CURRENT again after a change and after a resume token.",
        "A listener sends the changes only.",
        "proto TargetChange: RESET means that the target has been reset. Clients accept both.",
    ),
    Quirk(
        "descending_key_scan",
        "A query whose first order is __name__ descending fails with FAILED_PRECONDITION.",
        "It runs with an index on __name__ descending.",
        "Google's page 'Index types': __name__ can be sorted in both directions.",
    ),
    Quirk(
        "partition_query",
        "PartitionQuery is UNIMPLEMENTED.",
        "PartitionQuery returns cursors.",
        "Reference of google.firestore.v1.Firestore.PartitionQuery.",
    ),
    Quirk(
        "milliseconds_of_server_times",
        "REQUEST_TIME is the time of the request in milliseconds, and differs from the commit time.",
        "REQUEST_TIME is the commit time.",
        "firelite keeps the commit time; proto ServerValue promises the precision of milliseconds.",
        always=False,
    ),
    Quirk(
        "skipped_results",
        "RunQuery does not report the number of results that the offset skipped.",
        "The first response reports them.",
        "proto RunQueryResponse.skipped_results.",
    ),
    Quirk(
        "mask_of_missing_documents",
        "ListDocuments with show_missing ignores the mask.",
        "The mask selects the fields.",
        "proto ListDocumentsRequest.mask: a field that is not in the mask is not returned.",
    ),
    Quirk(
        "token_of_the_last_page",
        "ListDocuments returns a next_page_token with a full page, even if no document follows.",
        "The token is omitted if there are no subsequent pages.",
        "proto ListDocumentsResponse.next_page_token.",
    ),
    Quirk(
        "negative_page_size",
        "ListDocuments takes a negative page_size for none.",
        "A negative page_size is INVALID_ARGUMENT.",
        "AIP-158 on pagination, which Google's services follow.",
    ),
    Quirk(
        "future_update_time",
        "A precondition on an update time in the future fails with FAILED_PRECONDITION.",
        "It fails with INVALID_ARGUMENT.",
        "No source: firelite's earlier decision, not verified.",
    ),
    Quirk(
        "vectors_in_array_transforms",
        "An array transform can put a vector into an array, which no other write can.",
        "An array cannot hold a vector.",
        "The emulator itself refuses such an array in a document.",
    ),
    Quirk(
        "fields_in_vectors",
        "A field transform can put a field into a vector, which no other write can.",
        "A vector holds its type and its numbers only.",
        "The emulator itself refuses such a vector in a document.",
    ),
    Quirk(
        "range_locks_of_queries",
        "A query in a transaction locks the range that it scans, so that writes of other documents wait, or time out.",
        "A write of a document that the query did not return can succeed; the transaction is then aborted if its "
        "result has changed.",
        "Google's page 'Transaction serializability and isolation'. Firelite checks the results at commit, which is "
        "as strict.",
    ),
    Quirk(
        "starvation_under_contention",
        "A transaction can lose more often than a client retries it.",
        "A retried transaction gets precedence.",
        "proto TransactionOptions.ReadWrite.retry_transaction. The cause in the emulator is not verified.",
        always=False,
    ),
    Quirk(
        "victim_of_a_deadlock",
        "In a deadlock, the transaction that has waited longer is aborted. A commit locks its documents one by one.",
        "The transaction that has read first wins.",
        "No source: firelite's earlier decision, not verified. It lets a retried transaction win.",
        always=False,
    ),
    Quirk(
        "lock_timeout",
        "A write outside a transaction that waits for a lock ends with ABORTED after two seconds.",
        "A lock wait ends with ABORTED after about 15 seconds.",
        "Our notes on production; firelite waits 15 seconds.",
        always=False,
    ),
    Quirk(
        "order_of_waiting_writes",
        "A write outside a transaction that waits for a lock can be overtaken by a later one.",
        "The order of concurrent writes is not defined.",
        "Google's page 'Transaction serializability and isolation'. Firelite grants locks in the order of requests.",
    ),
    Quirk(
        "canceled_calls",
        "A write that waits for a lock can be applied after its call was canceled.",
        "The outcome of a canceled write is not defined.",
        "gRPC: a canceled call may have had its effect. Firelite does not apply a write that still waits.",
        always=False,
    ),
    Quirk(
        "name_as_a_field",
        "A mask and a transform can name the field __name__.",
        "Field names of the form __.*__ cannot be written.",
        "Google's page 'Usage and limits', constraints on field names.",
    ),
    Quirk(
        "depth_limit",
        "Maps and arrays can nest deeper than 20 levels.",
        "A value nests 20 levels at most.",
        "Google's page 'Usage and limits', maximum depth of fields in a map or array.",
    ),
    Quirk(
        "transform_limit",
        "A write can have more than 500 field transforms.",
        "A commit applies 500 field transforms to a document at most.",
        "Google's page 'Usage and limits', maximum number of field transformations.",
    ),
)

QUIRKS = {quirk.name: quirk for quirk in _TABLE}
