"""The states of a run that its event log shows, in the words of the specification."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fireswarm.contracts.swarm.event import EventType
from fireswarm.mind.states import ALLOWED, State

STATE_OF: Mapping[EventType, State] = {
    EventType.RUN_STARTED: State.INIT,
    EventType.SKILL_CATALOG_LOADED: State.LOAD_SKILL_CATALOG,
    EventType.SKILL_PREFILTER_COMPLETED: State.PREFILTER_SKILLS,
    EventType.PROMPT_COMPOSED: State.CALL_LLM,
    EventType.LLM_REQUEST_SENT: State.CALL_LLM,
    EventType.LLM_DECISION_DECODED: State.DECODE_DECISION,
    EventType.SKILL_STEP_EXECUTED: State.EXECUTE_STEP,
    EventType.RUN_FINISHED: State.DONE,
    EventType.RUN_FAILED: State.ERROR,
}
"""The state that an event of the log belongs to. The others belong to the state before them."""

SILENT = frozenset({State.DISCLOSE_CONTEXT_STAGE, State.VERIFY_PROGRESS, State.HANDOFF_OR_FINISH})
"""States that a run passes without an event of their own."""


def states_of(kinds: Iterable[EventType]) -> list[State]:
    """Return the states that a run's events show, in order; equal ones in a row once."""
    states: list[State] = []
    for kind in kinds:
        state = STATE_OF.get(kind)
        if state is not None and states[-1:] != [state]:
            states.append(state)
    return states


def may_follow(source: State, target: State) -> bool:
    """Return True if *target* may come after *source*, directly or through states without events."""
    if target is State.ERROR or (source, target) in ALLOWED:
        return True
    return any((source, through) in ALLOWED and may_follow(through, target) for through in SILENT - {source})
