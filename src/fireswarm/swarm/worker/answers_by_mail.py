"""Apply answers that arrive by mail: a message to a role answers a task of that role.

One commit changes the task and ends the message. If a worker is killed before the commit, nothing has changed, and
another worker of the role handles the message. Refused answers stay in the message, with the reason.
"""

from __future__ import annotations

from pathlib import Path

from fireswarm.contracts.base import JsonObject
from fireswarm.contracts.ports import Snapshot
from fireswarm.contracts.skills.skill import asks_a_person
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import InvalidInput, PolicyRefused
from fireswarm.runs.skill_runner import FILE_KEYS, places_named, texts_in
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.records.mailbox import parse_message
from fireswarm.swarm.records.policy import OPERATOR
from fireswarm.swarm.worker.mail import TAKEN


async def give_answers(parts: SwarmParts, role: str, snapshot: Snapshot) -> None:
    """Check a message and apply its answers to its task, in the commit that ends the message.

    Raises an error if the message must be refused.
    """
    message = parse_message(snapshot)
    parts.mailbox.policy.check_answer(message.from_agent_id, role)

    def accept(task: Task) -> None:
        if task.session_hash != message.session_hash:
            raise PolicyRefused(f"task {task.task_id} is of another session than the message")
        if task.assigned_to != role:
            raise InvalidInput(f"task {task.task_id} is for {task.assigned_to}: address the message to that role")
        parts.mailbox.policy.check_answer(message.from_agent_id, role, approves=asks_a_person(task.questions))
        if message.from_agent_id != OPERATOR:
            _check_places(task, message.payload.answers, parts.settings.path(Path()))

    ended = parts.mailbox.end_message_write(snapshot, TAKEN)
    await parts.board.answer(message.task_id, message.payload.answers, accept=accept, also=[ended])


def _check_places(task: Task, answers: JsonObject, base: Path) -> None:
    """Raise InvalidInput if an answer by a role names a place outside of the task's folder: a skill would open it."""
    named = task.context.get("path")
    folder = (base / named if isinstance(named, str) and "://" not in named else base).resolve()
    folder = folder.parent if folder.is_file() else folder
    ids = {question.key: question.name for question in task.questions}
    for key, value in answers.items():
        name = ids.get(key, key)
        for text in set(texts_in(value)):
            places = list(places_named(name, text, folder))
            if not places and name in (*FILE_KEYS, "path", "repository"):
                places = [(folder / Path(text.strip().removeprefix("file://")).expanduser()).resolve()]
            if outside := [place for place in places if not place.is_relative_to(folder)]:
                raise InvalidInput(
                    f"the answer {name} names {outside[0]}, which is outside of {folder}: only a person names that"
                )
