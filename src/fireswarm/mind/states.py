"""The states of a run in the words of the specification, and the moves between them. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class State(StrEnum):
    """State of a run."""

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
    """One allowed transition."""

    source: State
    target: State
    condition: str


S = State
TRANSITIONS: tuple[StateMove, ...] = (
    StateMove(S.INIT, S.LOAD_SKILL_CATALOG, "the run starts"),
    StateMove(S.LOAD_SKILL_CATALOG, S.PREFILTER_SKILLS, "the catalog is loaded"),
    StateMove(S.PREFILTER_SKILLS, S.DISCLOSE_CONTEXT_STAGE, "candidates were found, or all skills are shown"),
    StateMove(S.DISCLOSE_CONTEXT_STAGE, S.CALL_LLM, "the disclosed material is selected and within its limits"),
    StateMove(S.CALL_LLM, S.CALL_LLM, "transient error, retries left"),
    StateMove(S.CALL_LLM, S.DECODE_DECISION, "the model answered"),
    StateMove(S.CALL_LLM, S.DONE, "dry run: the prompt is composed, no model is called"),
    StateMove(S.DECODE_DECISION, S.CALL_LLM, "invalid decision, the one repair attempt is left"),
    StateMove(S.DECODE_DECISION, S.EXECUTE_STEP, "the decision contains actions"),
    StateMove(S.DECODE_DECISION, S.HANDOFF_OR_FINISH, "the decision is a finish, a handoff or a disclosure request"),
    StateMove(S.EXECUTE_STEP, S.VERIFY_PROGRESS, "all steps were executed"),
    StateMove(S.EXECUTE_STEP, S.EXECUTE_STEP, "a step failed and the policy allows one retry"),
    StateMove(S.EXECUTE_STEP, S.HANDOFF_OR_FINISH, "a step failed and another skill is left, or a question is open"),
    StateMove(S.VERIFY_PROGRESS, S.DISCLOSE_CONTEXT_STAGE, "more material has to be disclosed"),
    StateMove(S.VERIFY_PROGRESS, S.CALL_LLM, "continue with the results of the steps"),
    StateMove(S.VERIFY_PROGRESS, S.HANDOFF_OR_FINISH, "the objective is met"),
    StateMove(S.HANDOFF_OR_FINISH, S.DISCLOSE_CONTEXT_STAGE, "another skill takes over, or more material is disclosed"),
    StateMove(S.HANDOFF_OR_FINISH, S.CALL_LLM, "the result is invalid and the model has to correct it"),
    StateMove(S.HANDOFF_OR_FINISH, S.DONE, "the run is complete, or waits for an answer"),
)
"""All transitions except ``* -> ERROR``, and ``* -> CALL_LLM`` after a person's reply to a failure.

They are those of the specification, and ours for dry runs, invalid results and waiting.
"""

ALLOWED = frozenset((move.source, move.target) for move in TRANSITIONS)
