"""Find messages that no agent will ever act on, such as those that a person wrote without a kind."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from fireswarm.contracts.ports import Query, Snapshot, Store
from fireswarm.contracts.swarm.envelope import MailKind, MailStatus
from fireswarm.errors import InvalidInput
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import MAILBOX
from fireswarm.swarm.board.operator.stalls import Stall
from fireswarm.swarm.records.mailbox import parse_message

KINDS = f"kind to {MailKind.MESSAGE.value}, to ask for work, or to {MailKind.ANSWERS.value}, to answer a task"


async def find_idle_mail(store: Store, roles: Collection[str], limit: int = 200) -> list[Stall]:
    """Return idle messages of all roles, each with what it lacks. Reads up to *limit* documents of each kind."""
    new, odd = queries.new_mail(limit), queries.odd_mail(limit)
    return await _find(store, roles, (new, odd, queries.by_id(MAILBOX, limit)))


async def find_idle_mail_of(store: Store, role: str, roles: Collection[str], limit: int = 50) -> list[Stall]:
    """Return idle messages to one role, and those of any role whose status no agent looks for."""
    return await _find(store, roles, (queries.inbox(role, limit), queries.odd_mail(limit)))


async def _find(store: Store, roles: Collection[str], chosen: Sequence[Query]) -> list[Stall]:
    snapshots = {item.path: item for query in chosen for item in await store.query(query)}
    reasons = {path: _reason(snapshot, roles) for path, snapshot in snapshots.items()}
    return [Stall(path, reason) for path, reason in reasons.items() if reason]


def _reason(snapshot: Snapshot, roles: Collection[str]) -> str:
    """Return what the message lacks and what to do, or an empty string."""
    data: Any = snapshot.data or {}
    status, to, kind = data.get("status"), data.get("to_agent_id"), data.get("kind")
    if status not in list(MailStatus):  # a hand-written value may be of any type
        return f"its status is {status!r}, which no agent looks for: set status to new"
    if status != MailStatus.NEW:
        return ""
    if not isinstance(to, str) or not _role_of(to, roles):
        return f"its to_agent_id is {to!r}: set it to a role, one of {', '.join(sorted(roles))}"
    if kind is None and not ("schema_version" in data and data.get("message_id") == snapshot.id):
        return f"it has no kind: set {KINDS}"  # what agents write without a kind is for information, and complete
    if kind is not None and kind not in list(MailKind):
        return f"its kind is {kind!r}: set {KINDS}"
    if kind == MailKind.ANSWERS and to not in roles:
        return f"it has answers for the agent {to}: set to_agent_id to the role, {_role_of(to, roles)}"
    try:
        parse_message(snapshot)
    except InvalidInput as error:
        return f"{error}. Correct it"
    return ""


def _role_of(receiver: str, roles: Collection[str]) -> str:
    """Return the role of a receiver, a role or an agent, or ""."""
    return max((role for role in roles if receiver == role or receiver.startswith(f"{role}-")), key=len, default="")
