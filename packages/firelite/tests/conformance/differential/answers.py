"""Answers of a server in a form that can be compared."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.differential.steps import Step
from firelite.documents.protos import DocumentPb, FieldsPb, MessagePb, TimestampPb, ValuePb

SERVER_TIMES = range(1_700_000_000, 7_000_000_000)
"""Seconds of the server's clock. Generated timestamps are outside this range."""
_TIME = re.compile(r"<time (\d+)>")


@dataclass(frozen=True, slots=True)
class Answer:
    """The status of a call, its messages and the text of its error."""

    code: str
    messages: tuple[MessagePb, ...] = ()
    details: str = ""


def describe(steps: Sequence[Step], answers: Sequence[Answer]) -> list[str]:
    """Return one comparable text per step: values exactly, times only by their order within the case."""
    texts = [_text(step, answer) for step, answer in zip(steps, answers, strict=True)]
    moments = sorted({int(moment) for text in texts for moment in _TIME.findall(text)})
    ranks = {str(moment): str(rank) for rank, moment in enumerate(moments)}
    return [_TIME.sub(lambda match: f"<time {ranks[match[1]]}>", text) for text in texts]


def _text(step: Step, answer: Answer) -> str:
    if answer.code != "OK":
        return answer.code
    return "\n".join(_READERS.get(step.rpc, _nothing)(answer.messages)) or "empty"


def _nothing(_: Sequence[MessagePb]) -> list[str]:
    return []


def _commit(messages: Sequence[MessagePb]) -> list[str]:
    results = messages[0].write_results
    # The time of a commit without writes has no meaning.
    return [*map(_write_result, results), f"committed {_time(messages[0].commit_time)}"] if results else ["committed"]


def _batch_write(messages: Sequence[MessagePb]) -> list[str]:
    return [
        f"status {status.code} {_write_result(result) if status.code == 0 else ''}"
        for status, result in zip(messages[0].status, messages[0].write_results, strict=True)
    ]


def _write_result(result: MessagePb) -> str:
    time = _time(result.update_time) if result.HasField("update_time") else "no time"
    return " ".join([time, *map(format_value, result.transform_results)])


def _document(message: DocumentPb) -> str:
    stamp = f"{_time(message.create_time)} {_time(message.update_time)}" if message.HasField("create_time") else "none"
    return f"{message.name} {stamp} {_fields(message.fields)}"


def _one_document(messages: Sequence[MessagePb]) -> list[str]:
    return [_document(messages[0])]


def _batch_get(messages: Sequence[MessagePb]) -> list[str]:
    # The order of the answers is not defined.
    return sorted(
        f"missing {message.missing}" if message.missing else _document(message.found)
        for message in messages
        if message.WhichOneof("result") is not None
    )


def _query(messages: Sequence[MessagePb]) -> list[str]:
    return [_document(message.document) for message in messages if message.HasField("document")]


def _aggregation(messages: Sequence[MessagePb]) -> list[str]:
    fields = messages[0].result.aggregate_fields
    return [f"{alias} {format_value(fields[alias])}" for alias in sorted(fields)]


def _listing(messages: Sequence[MessagePb]) -> list[str]:
    return list(map(_document, messages[0].documents))


def _collection_ids(messages: Sequence[MessagePb]) -> list[str]:
    return [*messages[0].collection_ids, f"more {bool(messages[0].next_page_token)}"]


def _time(moment: TimestampPb) -> str:
    return f"<time {moment.seconds * 1_000_000_000 + moment.nanos}>"


def _fields(fields: FieldsPb) -> str:
    return "{" + ", ".join(f"{name!r}: {format_value(fields[name])}" for name in sorted(fields)) + "}"


def format_value(value: ValuePb) -> str:
    """Return a text that is equal for equal values only, except for the times of a server."""
    kind = value.WhichOneof("value_type")
    if kind == "array_value":
        return "[" + ", ".join(map(format_value, value.array_value.values)) + "]"
    if kind == "map_value":
        return _fields(value.map_value.fields)
    if kind == "timestamp_value":
        moment = value.timestamp_value
        return "server time" if moment.seconds in SERVER_TIMES else f"{moment.seconds}.{moment.nanos:09}"
    if kind == "geo_point_value":
        return f"({value.geo_point_value.latitude!r}, {value.geo_point_value.longitude!r})"
    content: Any = getattr(value, kind) if kind else None
    return f"{kind} {content!r}"


_READERS: dict[str, Callable[[Sequence[MessagePb]], list[str]]] = {
    "Commit": _commit,
    "BatchWrite": _batch_write,
    "CreateDocument": _one_document,
    "UpdateDocument": _one_document,
    "BatchGetDocuments": _batch_get,
    "RunQuery": _query,
    "RunAggregationQuery": _aggregation,
    "ListDocuments": _listing,
    "ListCollectionIds": _collection_ids,
}
