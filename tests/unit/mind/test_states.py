"""The state machine: its table is the specified one plus two transitions, and no other transition is possible."""

from __future__ import annotations

import pytest

from fireswarm.mind.states import ALLOWED, TERMINAL, TRANSITIONS, Machine, State

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


def at(state: State) -> Machine:
    machine = Machine()
    machine.state = state
    return machine


def test_table_equals_the_specification_plus_two_transitions() -> None:
    assert seed() | OURS == ALLOWED
    assert len(TRANSITIONS) == len(ALLOWED)
    assert all(move.condition for move in TRANSITIONS)


@pytest.mark.parametrize("source", list(State))
@pytest.mark.parametrize("target", list(State))
def test_move_succeeds_only_for_transitions_of_the_table(source: State, target: State) -> None:
    machine = at(source)
    allowed = source not in TERMINAL and (target is State.ERROR or (source, target) in ALLOWED)
    if allowed:
        machine.move(target)
        assert machine.state is target
    else:
        with pytest.raises(AssertionError, match="no transition"):
            machine.move(target)
        assert machine.state is source


def test_every_state_is_reachable() -> None:
    reached = {State.INIT}
    for _ in State:
        reached |= {target for source, target in ALLOWED if source in reached}
    assert reached | {State.ERROR} == set(State)
