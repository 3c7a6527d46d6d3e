"""Act on mailbox messages one by one: a message that causes an error is refused, and does not stop the others."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Awaitable, Callable
from datetime import timedelta

from fireswarm.contracts.limits import MAX_LABEL_CHARS, MAX_STORED_SUMMARY_CHARS, truncate
from fireswarm.contracts.ports import Create, Query, Snapshot, Write
from fireswarm.contracts.skills.artifact import Signal
from fireswarm.contracts.swarm.envelope import Envelope, MailKind, TaskRef
from fireswarm.errors import Conflict, FireswarmError, NewerDocument, StoreError, StoreRejected
from fireswarm.storage.documents.build import message_document
from fireswarm.storage.documents.paths import message_path
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.records.mailbox import parse_message

TAKEN = "taken"
REFUSED_SIGNAL = "refused"
OPERATOR = "operator"

Act = Callable[[SwarmParts, str, Snapshot], Awaitable[None]]
"""Acts on one message for a role, and ends it in the same commit or later."""

_log = logging.getLogger(__name__)


async def follow(parts: SwarmParts, role: str, query: Query, act: Act) -> None:
    """Act on the messages of a query as they arrive, until the listener ends."""
    async with parts.store.listen(query) as batches:
        async for snapshots in batches:
            for snapshot in snapshots:
                await act_on(parts, role, snapshot, act)


async def act_on(parts: SwarmParts, role: str, snapshot: Snapshot, act: Act) -> None:
    """Act on one message, or refuse it with the reason in its ``outcome``.

    Does nothing after a conflict: another worker was faster. Raises a StoreError that is not about the message.
    """
    try:
        await act(parts, role, snapshot)
    except Conflict:
        return
    except NewerDocument as newer:
        parts.board.aside.leave(snapshot, newer)
    except Exception as error:  # a message may have any content; one that causes an unexpected error is refused too
        if isinstance(error, StoreError) and not isinstance(error, StoreRejected):
            raise
        if not isinstance(error, FireswarmError):
            _log.error("%s could not be handled", snapshot.path, exc_info=error)
        await _refuse(parts, role, snapshot, str(error) or type(error).__name__)


async def _refuse(parts: SwarmParts, role: str, snapshot: Snapshot, reason: str) -> None:
    """End the message and notify its sender; a message that is too large for the reason ends without it."""
    full = [parts.mailbox.end_message_write(snapshot, f"refused: {reason}"), *_reply(parts, role, snapshot, reason)]
    for writes in (full, [parts.mailbox.end_message_write(snapshot, "refused", complete=False)]):
        try:
            await parts.store.commit(writes)
        except Conflict:
            return
        except StoreRejected as rejected:
            _log.warning("%s could not be refused: %s", snapshot.path, rejected)
        else:
            return


def _reply(parts: SwarmParts, role: str, snapshot: Snapshot, reason: str) -> list[Write]:
    """Return the write that notifies an agent that its message was refused. An operator reads the outcome instead."""
    try:
        message = parse_message(snapshot)
    except FireswarmError:
        return []
    if message.kind is not MailKind.MESSAGE or message.from_agent_id == OPERATOR:
        return []
    reply_id = str(uuid.uuid5(uuid.NAMESPACE_OID, message.message_id))
    now = parts.clock.now()
    envelope = Envelope(
        envelope_id=reply_id,
        task=TaskRef(task_id=message.message_id, assigned_to=role),
        session_hash=message.session_hash,
        signals=(
            Signal(
                name=REFUSED_SIGNAL, strength=1.0, subject=message.message_id, note=truncate(reason, MAX_LABEL_CHARS)
            ),
        ),
        notes=truncate(reason, MAX_STORED_SUMMARY_CHARS),
        trace=message.payload.trace,
    )
    keep_until = now + timedelta(days=parts.mailbox.policy.retention_days)
    return [Create(message_path(reply_id), message_document(envelope, role, message.from_agent_id, now, keep_until))]
