"""Mail, memory and status on the wire."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from fireswarm.api.models.base import MOMENT, AnyJson, Page, ResponseModel, documented
from fireswarm.api.models.work import TASK_ID, ArtifactOut, SignalOut
from fireswarm.contracts.swarm.envelope import MailKind, MailStatus


class EnvelopeOut(ResponseModel):
    """What was handed over."""

    artifacts: tuple[ArtifactOut, ...] = documented("pieces of work", [], default=())
    signals: tuple[SignalOut, ...] = documented("what was noticed", [], default=())
    answers: dict[str, Any] = documented("answers to a task's questions", {"path": "notes"}, default_factory=dict)
    notes: str = documented("words for the receiver", "the inventory, for your forecast", default="")


class MessageOut(ResponseModel):
    """A message or handoff of the mailbox."""

    message_id: str = documented("its id; of a planned task's envelope the task's", TASK_ID)
    from_agent_id: str = documented("role or agent that sent it", "architect")
    to_agent_id: str = documented("role or agent it is for", "scout")
    task_id: str = documented("task it is about", TASK_ID)
    kind: MailKind = documented("`answers` when it answers a task's questions, else empty", "answers")
    status: MailStatus = documented("new, claimed or read", "new")
    outcome: str = documented("what came of answers: taken, or why they were refused", "taken", default="")
    deliveries: int = documented("how often it was claimed", 0, default=0)
    payload: EnvelopeOut = documented("what was handed over", {"notes": "the inventory"})
    created_at: datetime = documented("when it was sent", MOMENT)
    expires_at: datetime | None = documented("when it is removed", MOMENT, default=None)


class MessagePage(Page):
    """Messages, the newest first."""

    items: tuple[MessageOut, ...] = documented("the messages of this page", [])


class FactOut(ResponseModel):
    """Something that the session knows."""

    bucket: str = documented("group of facts", "inventory")
    key: str = documented("its name in the bucket", "files")
    value: AnyJson = documented("what is known", 12)
    keywords: tuple[str, ...] = documented("words that recall finds it by", ["files", "inventory"], default=())
    source: str = documented("where it comes from", f"task {TASK_ID}", default="")
    confidence: float = documented("how sure, from 0 to 1", 0.9, default=1.0)
    learned_at: datetime | None = documented("when it was learned", MOMENT, default=None)


class FactPage(Page):
    """Facts, those learned last first."""

    items: tuple[FactOut, ...] = documented("the facts of this page", [])


class Recalled(ResponseModel):
    """What memory recalls."""

    keywords: tuple[str, ...] = documented("the words that were looked for", ["files"])
    items: tuple[FactOut, ...] = documented("facts that carry any of them", [])


class HeartbeatOut(ResponseModel):
    """A role process by its latest heartbeat."""

    agent_id: str = documented("the process", "scout-host-1a2b3c4d")
    role: str = documented("its role", "scout")
    state: str = documented("starting, idle, working, stopping, stopped, or gone: silent without goodbye", "idle")
    beat_at: datetime = documented("when it was last heard of", MOMENT)
    started_at: datetime | None = documented("when it started", MOMENT, default=None)
    running: int = documented("tasks it works on", 1)
    capacity: int = documented("tasks it can work on at once", 4)
    cpu: float = documented("share of one core, in percent", 3.5)
    mem: int = documented("resident bytes", 120_000_000)
    version: str = documented("of fireswarm", "0.1.0")


class HeartbeatPage(ResponseModel):
    """The fleet, whatever session it was started for."""

    items: tuple[HeartbeatOut, ...] = documented("role processes, those heard last first", [])
    total: int = documented("how many are listed", 5)


class RoleOut(ResponseModel):
    """A role of this swarm."""

    name: str = documented("its name", "scout")
    description: str = documented("what it is for", "Looks around and reports what is there.")
    capabilities: tuple[str, ...] = documented("what its agents have", ["workspace"])


class StatusOut(ResponseModel):
    """How the swarm is."""

    version: str = documented("of fireswarm", "0.1.0")
    session: str = documented("the one session that this API serves", "default")
    now: datetime = documented("the server's time", MOMENT)
    tasks: dict[str, int] = documented("tasks of the session by status", {"queued": 2, "done": 40})
    agents: dict[str, int] = documented("role processes by state", {"idle": 5})
    roles: tuple[RoleOut, ...] = documented("roles of this swarm", [])
    reads: int = documented("Firestore reads of this process so far", 120)
    writes: int = documented("Firestore writes of this process so far", 12)


def heartbeat_out(status: Any, now: datetime) -> HeartbeatOut:
    """A heartbeat as it is answered: what it holds may be another session's, so ids are left out."""
    hints = status.queue_hints
    return HeartbeatOut(
        agent_id=status.agent_id,
        role=status.role,
        state=status.state_at(now),
        beat_at=status.created_at,
        started_at=status.started_at,
        running=int(hints.get("running", 0)),
        capacity=int(hints.get("capacity", 0)),
        cpu=status.cpu,
        mem=status.mem,
        version=status.version,
    )
