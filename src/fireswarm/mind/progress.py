"""Detection of runs without progress: repeated actions with the same result, repeated handoffs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from fireswarm.contracts.limits import MAX_LABEL_CHARS, truncate
from fireswarm.contracts.llm.chat import ToolCall
from fireswarm.contracts.llm.decision import ActionStep, StepExecutionResult, StepStatus
from fireswarm.contracts.swarm.task import canonical_json
from fireswarm.errors import NoProgress

SAME_TWICE = 2
"""A repeated action with a repeated result would give that result again."""

SAME_CALLS = 3
"""The same call in so many answers, with the same result each time and nothing in between, ends the run."""

WARNING = "[You have seen this result of this call before. The same once more ends the run: try another way.]"


@dataclass(slots=True)
class Progress:
    """Actions with their results and counts. ``failed_now``: a step of this decision failed or was refused."""

    seen: dict[str, int] = field(default_factory=dict)
    idle: int = 0
    handoffs_to_self: int = 0
    failed_now: bool = False
    _handoffs: set[tuple[str, str]] = field(default_factory=set)
    _repeated: str = ""
    _cut: int = 0
    _turn: int = 0
    _in_turn: set[str] = field(default_factory=set)
    _reads: dict[str, int] = field(default_factory=dict)
    """Answers with a call that only reads, since the last call that may have changed something."""

    _change: str = ""
    """The last call that may have changed something."""

    _changes: int = 0
    """Answers with that call in a row."""

    _read_since: set[str] = field(default_factory=set)
    """Calls that only read, since the first in that row."""

    def saw(self, action: ActionStep, result: StepExecutionResult) -> None:
        """Record a step; retries of a step count as one."""
        outcome = result.model_dump(mode="json", exclude={"step_id", "retry_count", "media"})
        key = canonical_json([action.type.value, action.params, outcome])
        self.seen[key] = self.seen.get(key, 0) + 1
        self.idle = 0
        self._handoffs.clear()
        self.failed_now = self.failed_now or result.status is not StepStatus.OK
        if self.seen[key] >= SAME_TWICE:
            what = action.params.get("command") or action.params.get("tool") or action.params.get("skill") or ""
            self._repeated = (
                f"{action.type.value} {truncate(str(what), MAX_LABEL_CHARS)!r} returned the same result twice"
            )

    def check(self) -> None:
        """Raise NoProgress if a step repeated an earlier one."""
        if self._repeated:
            raise NoProgress(f"{self._repeated}; run ended (no progress)")

    def saw_call(self, turn: int, call: ToolCall, output: str, *, changes: bool) -> str:
        """Record a call of a tool; returns a warning for the model before the last repetition, or "".

        The same call with the same output counts once for an answer, whose other calls were made without knowing it.
        A call that *changes* something makes all others count from the beginning. Raises NoProgress for the third.
        """
        self.idle = self._cut = 0
        if turn != self._turn:
            self._turn, self._in_turn = turn, set()
        seen = canonical_json([call.name, call.input, output])
        key = hashlib.sha256(seen.encode("utf-8", "surrogatepass")).hexdigest()  # a model may give half a character
        again = key in self._in_turn
        self._in_turn.add(key)
        times = self._count_change(key, again) if changes else self._count_read(key, again)
        if times >= SAME_CALLS:
            raise NoProgress(
                f"{call.name} was called {SAME_CALLS} times with the same input and the same result, and nothing was "
                "changed in between; run ended (no progress)"
            )
        return WARNING if times == SAME_CALLS - 1 else ""

    def _count_change(self, key: str, again: bool) -> int:
        """Return the number of answers in a row with a call that may change something."""
        self._reads.clear()
        if key != self._change:
            self._change, self._changes, again = key, 0, False
            self._read_since.clear()
        self._changes += not again
        return self._changes

    def _count_read(self, key: str, again: bool) -> int:
        """Return the number of answers with a call that only reads. One that was not seen before is progress."""
        if key not in self._read_since:
            self._read_since.add(key)
            self._changes = 0
        self._reads[key] = self._reads.get(key, 0) + (not again)
        return self._reads[key]

    def cut_short(self) -> None:
        """Record an answer without calls that is not complete; the third in a row raises NoProgress."""
        self._cut += 1
        if self._cut >= SAME_CALLS:
            raise NoProgress(
                f"{SAME_CALLS} answers in a row were cut off: raise model.max_tokens, or give a smaller task"
            )

    def nothing_done(self) -> None:
        """Record a decision without action, disclosure or finish; the second in a row raises NoProgress."""
        self.idle += 1
        if self.idle >= SAME_TWICE:
            raise NoProgress("two consecutive decisions planned nothing; run ended (no progress)")

    def note_handover(self, skill: str, other: str) -> None:
        """Record a handover; the same two skills again without a step in between raises NoProgress."""
        if (skill, other) in self._handoffs:
            raise NoProgress(f"{skill or 'the run'} handed over to {other} twice without an action in between")
        self._handoffs.add((skill, other))

    def self_handoff(self, skill: str) -> None:
        """Record a handover of a skill to itself; the second one raises NoProgress."""
        self.handoffs_to_self += 1
        if self.handoffs_to_self >= SAME_TWICE:
            raise NoProgress(f"{skill} handed over to itself twice; run ended (no progress)")
