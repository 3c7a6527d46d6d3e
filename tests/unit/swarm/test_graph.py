"""Validation of plans: acyclic plans are accepted in dependency order, cyclic ones are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fireswarm.contracts.skills.skill import PlannedTask
from fireswarm.errors import GraphInvalid
from fireswarm.swarm.board.graph import validate


def task(number: int, needs: set[int]) -> PlannedTask:
    return PlannedTask(
        key=f"t{number}", assigned_to="scout", objective="x", depends_on=tuple(f"t{need}" for need in sorted(needs))
    )


@st.composite
def graphs(draw: st.DrawFn) -> list[set[int]]:
    size = draw(st.integers(1, 12))
    return [draw(st.sets(st.integers(0, size - 1), max_size=4)) for _ in range(size)]


def reaches_itself(edges: list[set[int]]) -> bool:
    reach = [set(needs) for needs in edges]
    for _ in edges:
        reach = [needs | {far for near in needs for far in reach[near]} for needs in reach]
    return any(number in needs for number, needs in enumerate(reach))


@given(graphs())
def test_only_acyclic_plans_are_accepted_with_dependencies_first(edges: list[set[int]]) -> None:
    tasks = [task(number, needs) for number, needs in enumerate(edges)]
    if reaches_itself(edges):
        with pytest.raises(GraphInvalid, match="cycle"):
            validate(tasks, {"scout"}, 100)
        return
    ordered = [item.key for item in validate(tasks, {"scout"}, 100)]
    assert sorted(ordered) == sorted(item.key for item in tasks)
    for item in tasks:
        assert all(ordered.index(need) < ordered.index(item.key) for need in item.depends_on)
