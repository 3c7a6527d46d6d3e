"""One request of a case."""

from __future__ import annotations

from dataclasses import dataclass

from firelite.documents.protos import MessagePb


@dataclass(frozen=True, slots=True)
class Step:
    """One request. ``actor`` names the transaction that sends it; empty for a request outside a transaction."""

    rpc: str
    request: MessagePb
    actor: str = ""
