"""Make a failing case smaller by removing steps and parts of requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence

from google.protobuf.descriptor import FieldDescriptor

from conformance.differential.steps import Step
from firelite.documents.protos import MessagePb

ATTEMPTS_MAX = 400
KEPT = frozenset(
    {
        "parent",
        "database",
        "name",
        "collection_id",
        "document_id",
        "op",
        "field_path",
        "from_",
        "structured_query",
        "seconds",
        "nanos",
    }
)
"""Fields without which a request is refused."""

type Steps = Sequence[Step]


async def shrink(steps: Steps, fails: Callable[[Steps], Awaitable[bool]]) -> Steps:
    """Return the smallest steps found that still fail, after at most ``ATTEMPTS_MAX`` attempts."""
    attempts = 0
    smaller = True
    while smaller:
        smaller = False
        for candidate in _candidates(steps):
            attempts += 1
            if attempts > ATTEMPTS_MAX:
                return steps
            if await fails(candidate):
                steps, smaller = candidate, True
                break
    return steps


def _candidates(steps: Steps) -> Iterator[Steps]:
    for position in reversed(range(1, len(steps))):
        yield [*steps[:position], *steps[position + 1 :]]
    for position in reversed(range(len(steps))):
        step = steps[position]
        for request in reductions(step.request):
            yield [*steps[:position], Step(step.rpc, request, step.actor), *steps[position + 1 :]]


def reductions(message: MessagePb) -> Iterator[MessagePb]:
    """Yield copies of the message that lack one part, large parts first."""
    for field, content in message.ListFields():
        name = field.name
        if name not in KEPT:
            if _is_map(field):
                for key in content:
                    copy = _copy(message)
                    del getattr(copy, name)[key]
                    yield copy
            elif field.is_repeated:
                for position in range(len(content)):
                    copy = _copy(message)
                    del getattr(copy, name)[position]
                    yield copy
            else:
                copy = _copy(message)
                copy.ClearField(name)
                yield copy
    for field, content in message.ListFields():
        if field.message_type is not None:
            yield from _inner_reductions(message, field, content)


def _inner_reductions(message: MessagePb, field: FieldDescriptor, content: MessagePb) -> Iterator[MessagePb]:
    """Yield copies of the message with a reduction of one of the messages inside the field."""
    if _is_map(field):
        for key in content:
            for smaller in reductions(content[key]):
                copy = _copy(message)
                getattr(copy, field.name)[key].CopyFrom(smaller)
                yield copy
    elif field.is_repeated:
        for position, item in enumerate(content):
            for smaller in reductions(item):
                copy = _copy(message)
                getattr(copy, field.name)[position].CopyFrom(smaller)
                yield copy
    else:
        for smaller in reductions(content):
            copy = _copy(message)
            getattr(copy, field.name).CopyFrom(smaller)
            yield copy


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _copy(message: MessagePb) -> MessagePb:
    copy = type(message)()
    copy.CopyFrom(message)
    return copy
