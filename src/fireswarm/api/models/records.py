"""API models of mail, memory, heartbeats and status."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from fireswarm.api.models.base import MOMENT, AnyJson, Page, ResponseModel, documented
from fireswarm.api.models.work import TASK_ID, ArtifactOut, SignalOut
from fireswarm.contracts.swarm.envelope import MailKind, MailStatus
from fireswarm.settings.packaged import __version__


class EnvelopeOut(ResponseModel):
    """Content of a handoff."""

    artifacts: tuple[ArtifactOut, ...] = documented("artifacts handed over", [], default=())
    signals: tuple[SignalOut, ...] = documented("signals handed over", [], default=())
    answers: dict[str, Any] = documented(
        "answers to a task's questions, by id or name", {"1-1": "notes"}, default_factory=dict
    )
    notes: str = documented("note to the receiver", "the inventory, for your forecast", default="")


class MessageOut(ResponseModel):
    """A message or handoff of the mailbox."""

    message_id: str = documented("message id; for a planned task's envelope, the id of the task", TASK_ID)
    from_agent_id: str = documented("role or agent that sent it", "architect")
    to_agent_id: str = documented("role or agent it is addressed to", "scout")
    task_id: str = documented("task it concerns", TASK_ID)
    kind: MailKind = documented("`answers` if it answers a task's questions, otherwise empty", "answers")
    status: MailStatus = documented("delivery status: new, claimed or read", "new")
    outcome: str = documented("result of answers: `taken`, or the reason for rejection", "taken", default="")
    deliveries: int = documented("number of times it was claimed", 0, default=0)
    payload: EnvelopeOut = documented("content of the handoff", {"notes": "the inventory"})
    created_at: datetime = documented("time of sending", MOMENT)
    expires_at: datetime | None = documented("time of removal", MOMENT, default=None)


class MessagePage(Page):
    """Messages, newest first."""

    items: tuple[MessageOut, ...] = documented("messages of this page", [])


class FactOut(ResponseModel):
    """A fact stored for the session."""

    bucket: str = documented("group of facts", "inventory")
    key: str = documented("name of the fact in its bucket", "files")
    value: AnyJson = documented("value of the fact", 12)
    keywords: tuple[str, ...] = documented("keywords by which recall finds it", ["files", "inventory"], default=())
    source: str = documented("origin of the fact", f"task {TASK_ID}", default="")
    evidence: tuple[str, ...] = documented("where it can be checked", ["README.md:12"], default=())
    replaces: str = documented("id or `bucket/key` of an older fact that is no longer true", "", default="")
    confidence: float = documented("confidence from 0 to 1", 0.9, default=1.0)
    learned_at: datetime | None = documented("time at which it was learned", MOMENT, default=None)
    fact_id: str = documented("id of the document", "fact-0a1b2c3d", default="")


class FactPage(Page):
    """Facts, most recently stored first."""

    items: tuple[FactOut, ...] = documented("facts of this page", [])


class FactHistory(ResponseModel):
    """The values that a fact has had."""

    items: tuple[FactOut, ...] = documented("values of the fact, newest first; the first one is current", [])
    total: int = documented("number of items", 2)


class Recalled(ResponseModel):
    """Facts found by a recall query."""

    keywords: tuple[str, ...] = documented("words of the query", ["files"])
    items: tuple[FactOut, ...] = documented("facts that share a word with the query, best first", [])


class HeartbeatOut(ResponseModel):
    """The latest heartbeat of a role process."""

    agent_id: str = documented("process id in the swarm", "scout-host-1a2b3c4d")
    role: str = documented("role of the process", "scout")
    state: str = documented(
        "starting, idle, working, stopping, stopped, or gone (no heartbeats and no clean stop)", "idle"
    )
    beat_at: datetime = documented("time of the latest heartbeat", MOMENT)
    started_at: datetime | None = documented("time at which the process started", MOMENT, default=None)
    running: int = documented("number of tasks in progress", 1)
    capacity: int = documented("maximum number of concurrent tasks", 4)
    queued: int = documented("number of tasks that wait for the role", 3, default=0)
    oldest_seconds: float = documented("age of the oldest of them", 12.5, default=0.0)
    cpu: float = documented("CPU use of the process and its children in percent of one core", 3.5)
    mem: int = documented("resident memory of the process and its children in bytes", 120_000_000)
    version: str = documented("fireswarm version of the worker", __version__)


class HeartbeatPage(ResponseModel):
    """Role processes of the fleet, of all sessions."""

    items: tuple[HeartbeatOut, ...] = documented("role processes, latest heartbeat first", [])
    total: int = documented("number of items", 5)


class RoleOut(ResponseModel):
    """A role of this swarm."""

    name: str = documented("role name", "scout")
    description: str = documented("purpose of the role", "Looks around and reports what is there.")
    capabilities: tuple[str, ...] = documented("ids of the role's capabilities", ["workspace"])


class StatusOut(ResponseModel):
    """Status of the swarm."""

    version: str = documented("fireswarm version of the API process", __version__)
    session: str = documented("session that this API serves", "default")
    now: datetime = documented("current time of the server", MOMENT)
    tasks: dict[str, int] = documented("number of the session's tasks by status", {"queued": 2, "done": 40})
    agents: dict[str, int] = documented("number of role processes by state", {"idle": 5})
    roles: tuple[RoleOut, ...] = documented("roles of this swarm", [])
    reads: int = documented("Firestore reads of the API process since its start", 120)
    writes: int = documented("Firestore writes of the API process since its start", 12)


def heartbeat_out(status: Any, now: datetime) -> HeartbeatOut:
    """Convert a heartbeat. Task ids are left out: the process may serve another session."""
    hints = status.queue_hints
    return HeartbeatOut(
        agent_id=status.agent_id,
        role=status.role,
        state=status.state_at(now),
        beat_at=status.created_at,
        started_at=status.started_at,
        running=hints.running,
        capacity=hints.capacity,
        queued=hints.queued,
        oldest_seconds=hints.oldest_seconds,
        cpu=status.cpu,
        mem=status.mem,
        version=status.version,
    )
