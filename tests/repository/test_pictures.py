"""The picture of a task's life shows the moves that the board makes, each legible within the picture."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from tools import pictures

from fireswarm.contracts.skills.skill import Question
from fireswarm.contracts.swarm.outcome import Retry, Waiting
from fireswarm.contracts.swarm.task import StatusReason, TaskStatus
from tests.support.swarm import SwarmRig, done

WORKING, BLOCKED = TaskStatus.IN_PROGRESS, TaskStatus.BLOCKED
FIRST_TEXT = re.compile(r'<text x="([\d.]+)" y="([\d.]+)" class="([\w ]*)" text-anchor="(\w+)">([^<]*)</text>')
WIDTH_OF_LETTER = {"small": 6.9, "code": 7.9, "": 7.9}
"""Pixels of an average letter of each kind of text, at most."""


class Watched:
    """A task whose moves are noted."""

    def __init__(self, swarm: SwarmRig, task_id: str) -> None:
        self.swarm, self.task_id = swarm, task_id
        self.status: TaskStatus | None = None
        self.moves: set[tuple[TaskStatus | None, TaskStatus, str]] = set()

    async def note(self, by: str) -> None:
        """Note the move from the status that was noted last."""
        status = (await self.swarm.task(self.task_id)).status
        self.moves.add((self.status, status, by))
        self.status = status


async def watched(swarm: SwarmRig, objective: str, **fields: Any) -> Watched:
    task = await swarm.submit(objective, **fields)
    noted = Watched(swarm, task.task_id)
    await noted.note("submit")
    return noted


async def moves_by_time(swarm: SwarmRig) -> Watched:
    noted = await watched(swarm, "lose every lease", max_attempts=2)
    for _ in range(2):
        await swarm.claim_one()
        await noted.note("claim")
        await swarm.clock.advance(swarm.board.rules.lease_seconds + 1)
        await swarm.board.sweep("scout")
        await noted.note("sweep")
    await swarm.board.retry(noted.task_id)
    await noted.note("retry")
    held = await swarm.claim_one()
    await swarm.settle(held, Retry("no network"))
    noted.status = BLOCKED
    await swarm.clock.advance(400)
    await swarm.board.sweep("scout")
    await noted.note("sweep")
    await swarm.board.cancel(noted.task_id)
    await noted.note("cancel")
    return noted


async def moves_by_people(swarm: SwarmRig) -> Watched:
    noted = await watched(swarm, "ask")
    held = await swarm.claim_one()
    question = Question(name="place", description="Where?")
    await swarm.settle(held, Waiting(StatusReason.INPUT_REQUIRED, "asks", (question,)))
    noted.status = BLOCKED
    await swarm.board.answer(noted.task_id, {"place": "here"})
    await noted.note("answer")
    await swarm.claim_one()
    noted.status = WORKING
    await swarm.board.cancel(noted.task_id)
    await noted.note("cancel")
    return noted


async def moves_after_a_dependency(swarm: SwarmRig) -> Watched:
    first = await swarm.submit("first")
    noted = await watched(swarm, "second", depends_on=(first.task_id,))
    await swarm.settle(await swarm.claim_one(), done())
    await noted.note("commit_with_dependents")
    await swarm.board.cancel(noted.task_id)
    return noted


async def moves_at_a_deadline(swarm: SwarmRig) -> Watched:
    noted = await watched(swarm, "too late", deadline=swarm.clock.now() + timedelta(seconds=60))
    await swarm.clock.advance(61)
    await swarm.board.sweep("scout")
    await noted.note("sweep")
    await swarm.board.cancel(noted.task_id)
    await noted.note("cancel")
    return noted


@pytest.mark.anyio
async def test_moves_outside_of_a_turn_are_those_of_the_board(swarm: SwarmRig) -> None:
    made: set[tuple[TaskStatus | None, TaskStatus, str]] = set()
    for story in (moves_by_time, moves_by_people, moves_after_a_dependency, moves_at_a_deadline):
        made |= (await story(swarm)).moves
    outcomes = set(pictures.outcomes())
    drawn = {
        (move.source, move.target, move.by) for move in pictures.moves() if not outcomes & set(move.by.split(", "))
    }
    assert made == drawn


def test_picture_names_every_status_outcome_and_reason() -> None:
    text = " ".join(re.findall(r">([^<>]+)</text>", pictures.life()))
    names = {*TaskStatus, *StatusReason, *pictures.outcomes()}
    assert {name for name in names if re.search(rf"\b{name}\b", text) is None} == set()


@pytest.mark.parametrize("draw", [pictures.whole, pictures.life, pictures.handoff, pictures.port])
def test_no_text_reaches_over_the_edge(draw: pictures.Draw) -> None:
    faults: list[str] = []
    for x, _, kind, anchor, text in FIRST_TEXT.findall(draw()):
        width = len(text) * WIDTH_OF_LETTER.get(kind.split(" ", maxsplit=1)[0], 8.6)
        left = float(x) - {"start": 0, "middle": width / 2, "end": width}[anchor]
        if left < 8 or left + width > pictures.WIDTH - 8:
            faults.append(text)
    assert faults == []
