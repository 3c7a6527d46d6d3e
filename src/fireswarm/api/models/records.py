"""Mail, memory and status on the wire."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from fireswarm.api.models.base import MOMENT, AnyJson, Page, View, said
from fireswarm.api.models.work import TASK_ID, ArtifactView, SignalView
from fireswarm.contracts.swarm.envelope import MailKind, MailStatus


class EnvelopeView(View):
    """What was handed over."""

    artifacts: tuple[ArtifactView, ...] = said("pieces of work", [], default=())
    signals: tuple[SignalView, ...] = said("what was noticed", [], default=())
    answers: dict[str, Any] = said("answers to a task's questions", {"path": "notes"}, default_factory=dict)
    notes: str = said("words for the receiver", "the inventory, for your forecast", default="")


class MessageView(View):
    """A message or handoff of the mailbox."""

    message_id: str = said("its id; of a planned task's envelope the task's", TASK_ID)
    from_agent_id: str = said("role or agent that sent it", "architect")
    to_agent_id: str = said("role or agent it is for", "scout")
    task_id: str = said("task it is about", TASK_ID)
    kind: MailKind = said("`answers` when it answers a task's questions, else empty", "answers")
    status: MailStatus = said("new, claimed or read", "new")
    outcome: str = said("what came of answers: taken, or why they were refused", "taken", default="")
    deliveries: int = said("how often it was claimed", 0, default=0)
    payload: EnvelopeView = said("what was handed over", {"notes": "the inventory"})
    created_at: datetime = said("when it was sent", MOMENT)
    expires_at: datetime | None = said("when it is removed", MOMENT, default=None)


class MessagePage(Page):
    """Messages, the newest first."""

    items: tuple[MessageView, ...] = said("the messages of this page", [])


class FactView(View):
    """Something that the session knows."""

    bucket: str = said("group of facts", "inventory")
    key: str = said("its name in the bucket", "files")
    value: AnyJson = said("what is known", 12)
    keywords: tuple[str, ...] = said("words that recall finds it by", ["files", "inventory"], default=())
    source: str = said("where it comes from", f"task {TASK_ID}", default="")
    confidence: float = said("how sure, from 0 to 1", 0.9, default=1.0)
    learned_at: datetime | None = said("when it was learned", MOMENT, default=None)


class FactPage(Page):
    """Facts, those learned last first."""

    items: tuple[FactView, ...] = said("the facts of this page", [])


class Recalled(View):
    """What memory recalls."""

    keywords: tuple[str, ...] = said("the words that were looked for", ["files"])
    items: tuple[FactView, ...] = said("facts that carry any of them", [])


class HeartbeatView(View):
    """A role process by its latest heartbeat."""

    agent_id: str = said("the process", "scout-host-1a2b3c4d")
    role: str = said("its role", "scout")
    state: str = said("starting, idle, working, stopping, stopped, or gone: silent without goodbye", "idle")
    beat_at: datetime = said("when it was last heard of", MOMENT)
    started_at: datetime | None = said("when it started", MOMENT, default=None)
    running: int = said("tasks it works on", 1)
    capacity: int = said("tasks it can work on at once", 4)
    cpu: float = said("share of one core, in percent", 3.5)
    mem: int = said("resident bytes", 120_000_000)
    version: str = said("of fireswarm", "0.1.0")


class Heartbeats(View):
    """The fleet, whatever session it was started for."""

    items: tuple[HeartbeatView, ...] = said("role processes, those heard last first", [])
    total: int = said("how many are listed", 5)


class RoleView(View):
    """A role of this swarm."""

    name: str = said("its name", "scout")
    description: str = said("what it is for", "Looks around and reports what is there.")
    capabilities: tuple[str, ...] = said("what its agents have", ["workspace"])


class StatusView(View):
    """How the swarm is."""

    version: str = said("of fireswarm", "0.1.0")
    session: str = said("the one session that this API serves", "default")
    now: datetime = said("the server's time", MOMENT)
    tasks: dict[str, int] = said("tasks of the session by status", {"queued": 2, "done": 40})
    agents: dict[str, int] = said("role processes by state", {"idle": 5})
    roles: tuple[RoleView, ...] = said("roles of this swarm", [])
    reads: int = said("Firestore reads of this process so far", 120)
    writes: int = said("Firestore writes of this process so far", 12)


def heartbeat(status: Any, now: datetime) -> HeartbeatView:
    """A heartbeat as it is answered: what it holds may be another session's, so ids are left out."""
    hints = status.queue_hints
    return HeartbeatView(
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
