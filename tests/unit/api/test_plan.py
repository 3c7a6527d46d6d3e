"""Drawings of an objective: boxes to the right of what they wait for, and times that add up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from fireswarm.api.console.plan import BOX_HEIGHT, BOX_WIDTH, CHART_WIDTH, LEFT, draw_chart, draw_graph
from fireswarm.contracts.swarm.run import RunDocument, RunStatus
from fireswarm.contracts.swarm.task import Task, TaskStatus, Trace

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def a_task(number: int, *before: int, parent: int | None = None, status: TaskStatus = TaskStatus.QUEUED) -> Task:
    return Task(
        task_id=f"t{number}",
        session_hash="s",
        objective=f"task {number}",
        assigned_to="scout",
        status=status,
        idempotency_key=f"k{number}",
        depends_on=tuple(f"t{each}" for each in before),
        parent_task_id=None if parent is None else f"t{parent}",
        trace=Trace(chain_id="t0"),
        created_at=BEGIN,
        updated_at=BEGIN + timedelta(seconds=100),
    )


def a_run(task: int, start: int, end: int | None, status: RunStatus) -> RunDocument:
    return RunDocument(
        run_id=f"r{task}-{start}",
        task_id=f"t{task}",
        agent_id="a",
        role="scout",
        session_hash="s",
        epoch=1,
        status=status,
        started_at=BEGIN + timedelta(seconds=start),
        ended_at=None if end is None else BEGIN + timedelta(seconds=end),
    )


@given(st.lists(st.sets(st.integers(0, 30), max_size=4), min_size=1, max_size=30))
def test_each_box_is_right_of_what_it_waits_for_and_no_two_overlap(edges: list[set[int]]) -> None:
    tasks = [a_task(number, *(each for each in before if each < number)) for number, before in enumerate(edges)]
    graph = draw_graph(tasks)
    place = {box.task.task_id: box for box in graph.boxes}
    assert len(place) == len(tasks)
    assert all(place[each].x + BOX_WIDTH < place[task.task_id].x for task in tasks for each in task.depends_on)
    assert len({(box.x, box.y) for box in graph.boxes}) == len(tasks)
    assert len(graph.arrows) == sum(len(task.depends_on) for task in tasks)
    assert all(box.x + BOX_WIDTH <= graph.width and box.y + BOX_HEIGHT <= graph.height for box in graph.boxes)


def test_circle_that_a_hand_made_is_drawn() -> None:
    assert len(draw_graph([a_task(0), a_task(1, 3), a_task(2, 1), a_task(3, 2)]).boxes) == 4


def test_two_rows_that_are_joined_crosswise_do_not_cross() -> None:
    graph = draw_graph([a_task(0), a_task(1), a_task(2, 1), a_task(3, 0)])
    place = {box.task.task_id: box.y for box in graph.boxes}
    assert (place["t0"] < place["t1"]) == (place["t3"] < place["t2"])


def test_many_tasks_that_are_alike_are_one_box() -> None:
    tasks = [a_task(0)]
    tasks += [a_task(n, parent=0, status=TaskStatus.DONE if n % 2 else TaskStatus.QUEUED) for n in range(1, 500)]
    graph = draw_graph(tasks)
    assert sorted(len(box.tasks) for box in graph.boxes) == [1, 249, 250]


def test_times_of_a_task_are_where_it_waited_and_ran() -> None:
    task = a_task(0, status=TaskStatus.DONE)
    chart = draw_chart(
        [task], [a_run(0, 50, 100, RunStatus.COMPLETED), a_run(0, 20, 30, RunStatus.ERROR)], BEGIN + timedelta(days=1)
    )
    [row] = chart.rows
    assert [(bar.kind, bar.seconds) for bar in row.bars] == [
        ("waits", 20),
        ("error", 10),
        ("waits", 20),
        ("completed", 50),
    ]
    assert (row.bars[0].x, row.bars[-1].x + row.bars[-1].width) == (LEFT, LEFT + CHART_WIDTH)
    assert [moment for _, moment in chart.ticks][:: len(chart.ticks) - 1] == [BEGIN, BEGIN + timedelta(seconds=100)]


def test_run_that_goes_on_lasts_until_now() -> None:
    task = a_task(0, status=TaskStatus.IN_PROGRESS)
    chart = draw_chart([task], [a_run(0, 5, None, RunStatus.PROGRESS)], BEGIN + timedelta(seconds=25))
    assert [(bar.kind, bar.seconds) for bar in chart.rows[0].bars] == [("waits", 5), ("progress", 20)]
