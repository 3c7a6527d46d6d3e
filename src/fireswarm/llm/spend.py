"""Ledgers: spending of a session and of a day, across tasks.

``FileLedger``, for the stand-alone agent, has a line per call. ``StoreLedger``, for the swarm, has one document per
process, session and day, so that processes do not contend; it sums all of them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from fireswarm.contracts.ports import Clock, Merge, Store, Write
from fireswarm.llm.budget import Limit, Spend, limits_in_settings
from fireswarm.settings.agent import BudgetSettings
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import MEMORY

OTHERS_FRESH_SECONDS = 10.0
"""Maximum age of the other processes' figures in a budget check; the process's own figures are exact."""

KEEP = timedelta(days=90)

SessionDay = tuple[str, str]
"""A session, and a day (UTC)."""


@dataclass(slots=True)
class FileLedger:
    """Lines of ``spend.jsonl``: time, session, run, tokens, USD.

    The file is read once and appended to after each call.
    """

    path: Path
    clock: Clock
    session_name: str
    run_id: str
    _of_session: Spend | None = None
    _of_day: Spend = field(default_factory=Spend)
    _cut: bool = False

    async def session(self) -> Spend:
        """Return the spending of the session."""
        return self._read()[0]

    async def day(self) -> Spend:
        """Return the spending of the day (UTC)."""
        return self._read()[1]

    async def add(self, spend: Spend) -> None:
        """Add one call, and append it to the file."""
        session, day = self._read()
        session.add(spend)
        day.add(spend)
        line = {
            "ts": self.clock.now().isoformat(),
            "session": self.session_name,
            "run_id": self.run_id,
            "tokens": spend.tokens,
            "usd": None if spend.unpriced else round(spend.usd, 8),
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write("\n" * self._cut + json.dumps(line) + "\n")
        self._cut = False

    async def limits(self, budget: BudgetSettings, task: Spend, *, fresh: bool = False) -> Sequence[Limit]:
        """Return the budgets of the settings."""
        return await limits_in_settings(budget, task, self)

    def _read(self) -> tuple[Spend, Spend]:
        """Return the spending of the session and of the day; the file is read once."""
        if self._of_session is None:
            self._of_session = Spend()
            today = self.clock.now().date()
            text = self.path.read_bytes().decode("utf-8", "replace") if self.path.exists() else ""
            self._cut = not text.endswith("\n") and bool(text)  # after a crash the next entry must start a new line
            for line in text.split("\n"):
                try:
                    entry: dict[str, Any] = json.loads(line)
                    spent = Spend.of_call(int(entry["tokens"]), entry["usd"])
                    when = datetime.fromisoformat(entry["ts"])
                except (ValueError, KeyError, TypeError):
                    continue  # a line cut off by a crash
                if entry.get("session") == self.session_name:
                    self._of_session.add(spent)
                if when.date() == today:
                    self._of_day.add(spent)
        return self._of_session, self._of_day


@dataclass(slots=True)
class StoreLedger:
    """A process's spending in ``mcp_memory``: absolute figures, written together with the journal of their call.

    Each session has its own document; ``session_hash`` is the session that calls are counted for. The ledgers of one
    process share their figures, see ``of_session``.
    """

    store: Store
    clock: Clock
    session_hash: str
    agent_id: str
    own: dict[SessionDay, Spend] = field(default_factory=dict[SessionDay, Spend])
    others: dict[str, tuple[datetime, Spend, Spend]] = field(default_factory=dict[str, tuple[datetime, Spend, Spend]])
    stored: dict[SessionDay, int] = field(default_factory=dict[SessionDay, int])

    def of_session(self, session_hash: str) -> StoreLedger:
        """Return the ledger of another session in the same process."""
        return replace(self, session_hash=session_hash)

    async def session(self) -> Spend:
        """Return the spending of the session, over all processes."""
        return (await self._all())[0]

    async def day(self) -> Spend:
        """Return the spending of the day (UTC) in this session's project, over all processes."""
        return (await self._all())[1]

    async def add(self, spend: Spend) -> None:
        """Add one call; ``writes`` stores it."""
        self.own.setdefault((self.session_hash, self._today()), Spend()).add(spend)

    async def limits(self, budget: BudgetSettings, task: Spend, *, fresh: bool = False) -> Sequence[Limit]:
        """Return the budgets of the settings."""
        return await limits_in_settings(budget, task, self)

    def writes(self) -> Sequence[Write]:
        """Return the writes of figures not known to be stored. Figures are absolute, so a repeated write is safe."""
        return [
            Merge(
                self._path(session, day),
                {
                    "type": "spend",
                    "session_hash": session,
                    "agent_id": self.agent_id,
                    "day": day,
                    "expires_at": self.clock.now() + KEEP,
                    **own.fields(),
                },
            )
            for (session, day), own in sorted(self.own.items())
            if own.calls > self.stored.get((session, day), 0)
        ]

    def mark_stored(self, writes: Sequence[Write]) -> None:
        """Note which figures a commit has stored; later calls remain to be stored."""
        stored = {write.path: write.data for write in writes if isinstance(write, Merge)}
        for key in self.own:
            if (data := stored.get(self._path(*key))) is not None:
                self.stored[key] = max(self.stored.get(key, 0), int(data["calls"]))

    def _path(self, session: str, day: str) -> str:
        return f"{MEMORY}/spend-{self.agent_id}-{session}-{day}"

    def _today(self) -> str:
        return self.clock.now().date().isoformat()

    async def _all(self) -> tuple[Spend, Spend]:
        """Return the spending of the session and of the day, over all processes."""
        now = self.clock.now()
        others = self.others.get(self.session_hash)
        if others is None or (now - others[0]).total_seconds() >= OTHERS_FRESH_SECONDS:
            others = now, await self._sum(session_hash=self.session_hash), await self._sum(day=self._today())
            self.others[self.session_hash] = others
        session, day = Spend(), Spend()
        session.add(others[1])
        day.add(others[2])
        for (name, date), own in self.own.items():
            if name == self.session_hash:
                session.add(own)
            if date == self._today():
                day.add(own)
        return session, day

    async def _sum(self, **filters: str) -> Spend:
        """Sum the spending of the other processes."""
        total = Spend()
        for snapshot in await self.store.query(queries.spend(**filters)):
            data = snapshot.data or {}
            if data.get("agent_id") == self.agent_id:
                continue
            total.add(
                Spend(
                    int(data.get("calls", 0)),
                    int(data.get("tokens", 0)),
                    float(data.get("usd", 0.0)),
                    int(data.get("unpriced_calls", 0)),
                )
            )
        return total
