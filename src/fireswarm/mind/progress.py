"""Detection of runs without progress: repeated calls with the same result, and empty answers."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field

from fireswarm.contracts.llm.chat import ToolCall
from fireswarm.contracts.swarm.task import canonical_json
from fireswarm.errors import NoProgress

EMPTY_ANSWERS = 2
"""This number of empty answers in a row ends the run."""

SAME_CALLS = 3
"""The same call in this number of answers, with the same result and no change in between, ends the run."""

_WAITING = re.compile(
    r"(?i)(?<![\w./-])(?:sleep|usleep|wait|watch|poll)(?![\w./-])|--(?:wait|watch|follow)\b|[._]sleep\("
)
"""Words of a command line that waits, such as ``sleep 1; ./status`` or ``gh run watch``."""

WARNING = "[Same call, same result as before. Repeating it will end the run; try something else.]"


def waits(call: ToolCall) -> bool:
    """Return True for a call that waits for something to change: it may be repeated with the same result."""
    command = call.input.get("command")
    by_name = not {"wait", "sleep", "poll", "watch"}.isdisjoint(call.name.lower().split("_"))
    return (
        by_name or bool(call.input.get("wait_seconds")) or (isinstance(command, str) and bool(_WAITING.search(command)))
    )


@dataclass(slots=True)
class Progress:
    """Calls with their outputs, and how often they were repeated."""

    idle: int = 0
    _cut: int = 0
    _decision: int = 0
    _in_decision: set[str] = field(default_factory=set)
    _reads: dict[str, int] = field(default_factory=dict)
    """Number of answers with each read-only call, since the last call that may have changed something."""

    _change: str = ""
    """The last call that may have changed something."""

    _changes: int = 0
    """Number of consecutive answers with ``_change``."""

    _read_since: set[str] = field(default_factory=set)
    """Read-only calls since the first of these answers."""

    def saw_call(self, decision: int, call: ToolCall, output: str, *, changes: bool, waited: bool = False) -> str:
        """Record a call of a tool; returns a warning for the model before the last repetition, or "".

        A call that occurs several times in one answer counts once. A call that *changes* something resets the counts
        of all others; one that *waited* for something also its own. Raises NoProgress for the third repetition.
        """
        self.idle = self._cut = 0
        if waited:  # things change by themselves meanwhile
            self._reads.clear()
            self._change, self._changes = "", 0
            return ""
        if decision != self._decision:
            self._decision, self._in_decision = decision, set()
        seen = canonical_json([call.name, call.input, output])
        key = hashlib.sha256(seen.encode("utf-8", "surrogatepass")).hexdigest()  # a model may give lone surrogates
        again = key in self._in_decision
        self._in_decision.add(key)
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
        """Return the number of answers with a read-only call. A new call counts as progress."""
        if key not in self._read_since:
            self._read_since.add(key)
            self._changes = 0
        self._reads[key] = self._reads.get(key, 0) + (not again)
        return self._reads[key]

    def cut_short(self) -> None:
        """Record an incomplete answer without calls; the third in a row raises NoProgress."""
        self._cut += 1
        if self._cut >= SAME_CALLS:
            raise NoProgress(
                f"{SAME_CALLS} answers in a row were cut off: raise model.max_tokens, or give a smaller task"
            )

    def nothing_done(self) -> None:
        """Record an answer without calls and without text; the second in a row raises NoProgress."""
        self.idle += 1
        if self.idle >= EMPTY_ANSWERS:
            raise NoProgress("two answers in a row had no call and no text; run ended (no progress)")
