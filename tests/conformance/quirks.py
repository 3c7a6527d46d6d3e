"""Every known difference between Google's emulator and production, by name.

The conformance tests and the differential test look a quirk up by its name. A difference that is not in this table is
a defect of firelite. The texts are from version 1.20 of the emulator and from Google's documentation.
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


_TABLE = (
    Quirk(
        "message_texts",
        "The texts of errors describe a path as a protocol buffer, or do not name the document.",
        "The texts name the document.",
        "Texts of errors are not part of the API; firelite names the document for its users.",
    ),
    Quirk(
        "listener_resets",
        "A query's listener sends RESET and the whole result after each change, and repeats it after a resume token.",
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
        "proto ServerValue: 'the time at which the server processed the request, with millisecond precision'.",
    ),
    Quirk(
        "skipped_results",
        "RunQuery does not report the number of results that the offset skipped.",
        "The first response reports them.",
        "proto RunQueryResponse.skipped_results.",
    ),
    Quirk(
        "empty_mask_of_a_listing",
        "ListDocuments with an empty mask returns all fields.",
        "An empty mask returns none.",
        "proto ListDocumentsRequest.mask: a field that is not in the mask is not returned. The emulator's "
        "BatchGetDocuments does so.",
    ),
    Quirk(
        "future_update_time",
        "A precondition on an update time in the future fails with FAILED_PRECONDITION.",
        "It fails with INVALID_ARGUMENT.",
        "Observed in production: a time that no version can have is a fault of the request.",
    ),
    Quirk(
        "vectors_in_array_transforms",
        "An array transform can put a vector into an array, which no other write can.",
        "An array cannot hold a vector.",
        "The emulator itself refuses such an array in a document.",
    ),
    Quirk(
        "range_locks_of_queries",
        "A query in a transaction locks the range that it scans, so that writes of other documents wait, or time out.",
        "A write of a document that the query did not return can succeed; the transaction is then aborted if its "
        "result has changed.",
        "Google's page 'Transaction serializability and isolation'. Firelite checks the results at commit, which is "
        "as strict.",
    ),
)

QUIRKS = {quirk.name: quirk for quirk in _TABLE}
