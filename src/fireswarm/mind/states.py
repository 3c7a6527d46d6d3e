"""The states of a run and the moves between them, as data: what is not in the table cannot happen."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class State(StrEnum):
    """Where a run is."""

    INIT = "INIT"
    LOAD_SKILL_CATALOG = "LOAD_SKILL_CATALOG"
    PREFILTER_SKILLS = "PREFILTER_SKILLS"
    DISCLOSE_CONTEXT_STAGE = "DISCLOSE_CONTEXT_STAGE"
    CALL_LLM = "CALL_LLM"
    DECODE_DECISION = "DECODE_DECISION"
    EXECUTE_STEP = "EXECUTE_STEP"
    VERIFY_PROGRESS = "VERIFY_PROGRESS"
    HANDOFF_OR_FINISH = "HANDOFF_OR_FINISH"
    DONE = "DONE"
    ERROR = "ERROR"


class StateMove(NamedTuple):
    """One allowed move."""

    source: State
    target: State
    condition: str


S = State
TRANSITIONS: tuple[StateMove, ...] = (
    StateMove(S.INIT, S.LOAD_SKILL_CATALOG, "the run starts"),
    StateMove(S.LOAD_SKILL_CATALOG, S.PREFILTER_SKILLS, "the catalog is loaded"),
    StateMove(S.PREFILTER_SKILLS, S.DISCLOSE_CONTEXT_STAGE, "there are candidates, or all skills are shown"),
    StateMove(S.DISCLOSE_CONTEXT_STAGE, S.CALL_LLM, "disclosure is selected and within its caps"),
    StateMove(S.CALL_LLM, S.CALL_LLM, "a transient fault, and retries are left"),
    StateMove(S.CALL_LLM, S.DECODE_DECISION, "an answer came"),
    StateMove(S.CALL_LLM, S.DONE, "a dry run: the prompt is composed, nothing is called"),
    StateMove(S.DECODE_DECISION, S.CALL_LLM, "the answer is no decision, and its one repair is left"),
    StateMove(S.DECODE_DECISION, S.EXECUTE_STEP, "an action is decided"),
    StateMove(S.DECODE_DECISION, S.HANDOFF_OR_FINISH, "a finish, a handoff or more disclosure is decided"),
    StateMove(S.EXECUTE_STEP, S.VERIFY_PROGRESS, "the steps are over"),
    StateMove(S.EXECUTE_STEP, S.EXECUTE_STEP, "a step failed, and the policy allows one retry"),
    StateMove(
        S.EXECUTE_STEP, S.HANDOFF_OR_FINISH, "a step failed and another skill is left, or somebody has to answer"
    ),
    StateMove(S.VERIFY_PROGRESS, S.DISCLOSE_CONTEXT_STAGE, "more has to be disclosed"),
    StateMove(S.VERIFY_PROGRESS, S.CALL_LLM, "go on with what the steps gave"),
    StateMove(S.VERIFY_PROGRESS, S.HANDOFF_OR_FINISH, "the objective is met"),
    StateMove(S.HANDOFF_OR_FINISH, S.DISCLOSE_CONTEXT_STAGE, "another skill goes on, or more is disclosed"),
    StateMove(S.HANDOFF_OR_FINISH, S.CALL_LLM, "the result does not hold, and the model is told why"),
    StateMove(S.HANDOFF_OR_FINISH, S.DONE, "it is complete, or waits for somebody"),
)
"""Every move beside ``* -> ERROR``: the seed's, and ours for dry runs, results that do not hold, and waiting."""

ALLOWED = frozenset((move.source, move.target) for move in TRANSITIONS)
TERMINAL = frozenset({State.DONE, State.ERROR})


class Machine:
    """Holds the state and lets it change only along the table."""

    def __init__(self) -> None:
        """Begin at INIT."""
        self.state = State.INIT

    def move(self, target: State) -> None:
        """Go to *target*; a move that the table does not have is a fault of this program."""
        if self.state in TERMINAL or (target is not State.ERROR and (self.state, target) not in ALLOWED):
            raise AssertionError(f"no transition from {self.state} to {target}")
        self.state = target
