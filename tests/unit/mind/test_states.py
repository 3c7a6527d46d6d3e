"""The table of states: the specified one plus two transitions."""

from __future__ import annotations

from fireswarm.mind.states import ALLOWED, TRANSITIONS, State

SEED = """
INIT LOAD_SKILL_CATALOG
LOAD_SKILL_CATALOG PREFILTER_SKILLS
PREFILTER_SKILLS DISCLOSE_CONTEXT_STAGE
DISCLOSE_CONTEXT_STAGE CALL_LLM
CALL_LLM CALL_LLM
CALL_LLM DECODE_DECISION
DECODE_DECISION CALL_LLM
DECODE_DECISION EXECUTE_STEP
DECODE_DECISION HANDOFF_OR_FINISH
EXECUTE_STEP VERIFY_PROGRESS
EXECUTE_STEP EXECUTE_STEP
EXECUTE_STEP HANDOFF_OR_FINISH
VERIFY_PROGRESS DISCLOSE_CONTEXT_STAGE
VERIFY_PROGRESS CALL_LLM
VERIFY_PROGRESS HANDOFF_OR_FINISH
HANDOFF_OR_FINISH DISCLOSE_CONTEXT_STAGE
HANDOFF_OR_FINISH DONE
"""
OURS = {
    (State.CALL_LLM, State.DONE),  # a dry run
    (State.HANDOFF_OR_FINISH, State.CALL_LLM),  # an invalid result
}


def seed() -> set[tuple[State, State]]:
    pairs = [line.split() for line in SEED.strip().splitlines()]
    return {(State(source), State(target)) for source, target in pairs}


def test_table_equals_the_specification_plus_two_transitions() -> None:
    assert seed() | OURS == ALLOWED
    assert len(TRANSITIONS) == len(ALLOWED)
    assert all(move.condition for move in TRANSITIONS)


def test_every_state_is_reachable() -> None:
    reached = {State.INIT}
    for _ in State:
        reached |= {target for source, target in ALLOWED if source in reached}
    assert reached | {State.ERROR} == set(State)
