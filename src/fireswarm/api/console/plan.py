"""Drawings of an objective: what waits for what, and when each task waited and ran. Pure: numbers for a template."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from fireswarm.contracts.swarm.run import RunDocument
from fireswarm.contracts.swarm.task import Task

BOX_WIDTH, BOX_HEIGHT, GAP_X, GAP_Y = 200, 44, 60, 14
LEFT, CHART_WIDTH, ROW_HEIGHT, TICKS = 260, 700, 22, 5
"""Of the time chart: where its bars begin, how wide they may be, and how many times its scale names."""

SINGLE_TASKS = 60
"""Of larger objectives, tasks of one level with the same role, status and parent are one box."""

SORTING_PASSES = 4
SHOWN_ROWS = 200


@dataclass(frozen=True, slots=True)
class Box:
    """A task, or several that are alike, with its place. ``x`` and ``y`` are its upper left corner."""

    tasks: tuple[Task, ...]
    x: int
    y: int

    @property
    def task(self) -> Task:
        """The first of the tasks."""
        return self.tasks[0]


@dataclass(frozen=True, slots=True)
class Arrow:
    """A line from one box to another, of which the tasks wait for those of the first, or were planned by them."""

    path: str
    waits: bool


@dataclass(frozen=True, slots=True)
class Graph:
    """The boxes of an objective from left to right: each is to the right of all that it waits for."""

    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Bar:
    """A time in which a task waited, ``kind`` "waits", or the status of a run in which it was worked on."""

    kind: str
    x: float
    width: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Row:
    """The bars of one task."""

    task: Task
    y: int
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """The times of the tasks on one scale; ``ticks`` are its moments, each with its place."""

    rows: tuple[Row, ...]
    ticks: tuple[tuple[float, datetime], ...]
    left_out: int
    height: int

    @property
    def ticks_as(self) -> str:
        """How its moments are written: with their day if they span several."""
        spans_days = self.ticks[-1][1] - self.ticks[0][1] > timedelta(days=1)
        return "%d %b %H:%M" if spans_days else "%H:%M:%S"


def draw_graph(tasks: Sequence[Task]) -> Graph:
    """Return the graph of an objective's tasks, given parents first."""
    levels = _find_levels(tasks)
    groups = _group(tasks, levels)
    place = {task.task_id: number for number, group in enumerate(groups) for task in group}
    edges = {
        (place[before], place[task.task_id], waits)
        for task in tasks
        for before, waits in _before(task, place)
        if place[before] != place[task.task_id]
    }
    order = _sort_levels([levels[group[0].task_id] for group in groups], edges)
    boxes = [
        Box(tuple(group), levels[group[0].task_id] * (BOX_WIDTH + GAP_X), order[number] * (BOX_HEIGHT + GAP_Y))
        for number, group in enumerate(groups)
    ]
    arrows = [Arrow(_curve(boxes[start], boxes[end]), waits) for start, end, waits in sorted(edges)]
    width = max((box.x for box in boxes), default=0) + BOX_WIDTH
    height = max((box.y for box in boxes), default=0) + BOX_HEIGHT
    return Graph(tuple(boxes), tuple(arrows), width, height)


def draw_chart(tasks: Sequence[Task], runs: Iterable[RunDocument], now: datetime) -> Chart:
    """Return when each task waited and ran. What has not ended lasts until *now*."""
    runs_of = defaultdict[str, list[RunDocument]](list)
    for run in sorted(runs, key=lambda run: run.started_at):
        runs_of[run.task_id].append(run)
    shown = tasks[:SHOWN_ROWS]
    spans = {task.task_id: _spans_of(task, runs_of[task.task_id], now) for task in shown}
    moments = [moment for each in spans.values() for _, *both in each for moment in both]
    begin, end = min(moments, default=now), max(moments, default=now)
    scale = CHART_WIDTH / max((end - begin).total_seconds(), 1.0)
    rows = [
        Row(
            task,
            number * ROW_HEIGHT,
            tuple(
                Bar(
                    kind,
                    LEFT + (start - begin).total_seconds() * scale,
                    max(2.0, (stop - start).total_seconds() * scale),
                    (stop - start).total_seconds(),
                )
                for kind, start, stop in spans[task.task_id]
            ),
        )
        for number, task in enumerate(shown)
    ]
    step = timedelta(seconds=max((end - begin).total_seconds(), 1.0) / (TICKS - 1))
    ticks = [(LEFT + number * CHART_WIDTH / (TICKS - 1), begin + number * step) for number in range(TICKS)]
    return Chart(tuple(rows), tuple(ticks), len(tasks) - len(shown), len(rows) * ROW_HEIGHT)


def _before(task: Task, known: Mapping[str, int]) -> list[tuple[str, bool]]:
    """Return the tasks from which an arrow leads to a task: those it waits for, or else the one that planned it."""
    waits = [(before, True) for before in task.depends_on if before in known]
    parent = task.parent_task_id
    return waits or ([(parent, False)] if parent is not None and parent in known else [])


def _find_levels(tasks: Sequence[Task]) -> dict[str, int]:
    """Return how many tasks in a row come before each; a circle, which a hand can make, is cut."""
    known = {task.task_id: number for number, task in enumerate(tasks)}
    levels = dict.fromkeys(known, 0)
    for _ in range(len(tasks)):
        changed = False
        for task in tasks:
            level = max((levels[before] + 1 for before, _ in _before(task, known)), default=0)
            if levels[task.task_id] < level < len(tasks):
                levels[task.task_id], changed = level, True
        if not changed:
            break
    return levels


def _group(tasks: Sequence[Task], levels: Mapping[str, int]) -> list[list[Task]]:
    """Return the tasks of each box."""
    if len(tasks) <= SINGLE_TASKS:
        return [[task] for task in tasks]
    alike = defaultdict[tuple[object, ...], list[Task]](list)
    for task in tasks:
        status = task.status_reason or task.status
        alike[levels[task.task_id], task.assigned_to, status, task.parent_task_id].append(task)
    return list(alike.values())


def _sort_levels(levels: Sequence[int], edges: Iterable[tuple[int, int, bool]]) -> list[int]:
    """Return the place of each box in its level: near those that it is joined to, so that few arrows cross."""
    joined = defaultdict[int, list[int]](list)
    for start, end, _ in edges:
        joined[start].append(end)
        joined[end].append(start)
    members = defaultdict[int, list[int]](list)
    for number, level in enumerate(levels):
        members[level].append(number)
    order = [0] * len(levels)
    for numbers in members.values():
        for at, number in enumerate(numbers):
            order[number] = at
    for turn in range(SORTING_PASSES):
        for level in sorted(members, reverse=turn % 2 == 1):
            towards = 1 if turn % 2 else -1
            middles = {number: _middle(number, level + towards, joined, levels, order) for number in members[level]}
            for at, number in enumerate(sorted(members[level], key=lambda number: (middles[number], order[number]))):
                order[number] = at
    return order


def _middle(
    number: int, level: int, joined: Mapping[int, Sequence[int]], levels: Sequence[int], order: Sequence[int]
) -> float:
    """Return the mean place of the boxes at *level* that a box is joined to; its own place without any."""
    places = [order[other] for other in joined.get(number, ()) if levels[other] == level]
    return sum(places) / len(places) if places else float(order[number])


def _curve(start: Box, end: Box) -> str:
    """Return the path of an arrow from the right side of one box to the left side of another."""
    x, y = start.x + BOX_WIDTH, start.y + BOX_HEIGHT // 2
    to_x, to_y = end.x - 4, end.y + BOX_HEIGHT // 2
    bend = max(GAP_X // 2, abs(to_x - x) // 2)
    return f"M{x} {y}C{x + bend} {y} {to_x - bend} {to_y} {to_x} {to_y}"


def _spans_of(task: Task, runs: Sequence[RunDocument], now: datetime) -> list[tuple[str, datetime, datetime]]:
    """Return the times of a task: the runs, and where it waited between them and since."""
    found: list[tuple[str, datetime, datetime]] = []
    since = task.created_at
    for run in runs:
        if run.started_at > since:
            found.append(("waits", since, run.started_at))
        ended = max(run.started_at, run.ended_at or (task.updated_at if task.status.terminal else now))
        found.append((run.status.value, run.started_at, ended))
        since = max(since, ended)
    until = task.updated_at if task.status.terminal else now
    if until > since:
        found.append(("waits", since, until))
    return found
