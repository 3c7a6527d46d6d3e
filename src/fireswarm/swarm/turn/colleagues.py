"""The agents that a role can talk to: tasks of its plan, tasks beside it, its planner, and roles."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from fireswarm.contracts.skills.skill import CALL_KEY, PlannedTask
from fireswarm.contracts.swarm.outcome import Revision
from fireswarm.contracts.swarm.task import StatusReason, Task
from fireswarm.contracts.text_page import fence_lines
from fireswarm.errors import InvalidInput, NotFound, PolicyRefused, TerminalTask
from fireswarm.mind.assignment import Colleague
from fireswarm.mind.handlers.colleagues import ASKS
from fireswarm.storage.documents.paths import task_path
from fireswarm.storage.documents.read import parse_readable, parse_task_snapshot
from fireswarm.swarm.turn.state import Turn

PARENT = "parent"

WAITS_FOR_PERSON = (StatusReason.INPUT_REQUIRED, StatusReason.APPROVAL_REQUIRED)


@dataclass(frozen=True, slots=True)
class TurnColleagues:
    """The agents that the role of a turn can talk to."""

    turn: Turn

    async def find(self, name: str) -> Colleague:
        """Return the agent to ask. Raises InvalidInput for an unknown one, and for one that the policy excludes."""
        task = await self._task(name)
        if task is None and name not in self.turn.swarm.roles:
            raise InvalidInput(await self._unknown(name))
        role = task.assigned_to if task is not None else name
        try:
            self.turn.swarm.mailbox.policy.check_route(self.turn.task.assigned_to, role)
        except PolicyRefused as error:
            raise InvalidInput(str(error)) from error
        if task is not None and task.status_reason in WAITS_FOR_PERSON:
            raise InvalidInput(f"task {name} waits for a person's answer and cannot answer now; tell it what helps it")
        if task is not None and not task.epoch:
            raise InvalidInput(f"task {name} has not begun: it knows nothing yet; tell it what it should know")
        return Colleague(role, task.task_id if task is not None else "")

    async def tell(self, name: str, message: str, step: str) -> str:
        """Tell an agent something, once for each *step*; returns who hears it. Raises InvalidInput."""
        task = await self._task(name)
        if task is None:
            raise InvalidInput(await self._unknown(name))
        sender = self.turn.task.plan_key or self.turn.task.assigned_to
        message_id = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self.turn.task.task_id}/{step}"))
        try:
            await self.turn.swarm.board.say(task.task_id, message, sender, message_id)
        except TerminalTask as error:
            raise InvalidInput(f"{error}; ask it instead") from error
        return f"{name} ({task.assigned_to})"

    async def _task(self, name: str) -> Task | None:
        """Return the task of a name: a child by its key, the parent, or a task beside this one."""
        turn = self.turn
        for child in turn.relatives.children:
            if child.plan_key == name:
                return child
        parent = await self._parent()
        if name == PARENT:
            return parent
        return next((other for other in await self._beside(parent) if other.plan_key == name), None)

    async def _parent(self) -> Task | None:
        if self.turn.task.parent_task_id is None:
            return None
        try:
            parent = await self.turn.swarm.board.get(self.turn.task.parent_task_id)
        except (NotFound, InvalidInput):
            return None
        return parent if parent.session_hash == self.turn.task.session_hash else None

    async def _beside(self, parent: Task | None) -> Sequence[Task]:
        """Return the other tasks of the plan that this task is part of."""
        if parent is None:
            return ()
        ids = [task_id for task_id in parent.children if task_id != self.turn.task.task_id]
        read = await self.turn.swarm.store.get_many([task_path(task_id) for task_id in ids])
        tasks = parse_readable([item for item in read if item.data is not None], parse_task_snapshot)
        return [task for task in tasks if task.session_hash == self.turn.task.session_hash]

    async def _unknown(self, name: str) -> str:
        parent = await self._parent()
        known = [child.plan_key for child in (*self.turn.relatives.children, *await self._beside(parent))]
        keys = ", ".join([*known, *([PARENT] if parent is not None else [])]) or "none"
        roles = ", ".join(sorted(self.turn.swarm.roles))
        return f"there is no agent {name!r}: tasks are {keys}; roles to ask are {roles}"


async def with_questions(turn: Turn, planned: Sequence[PlannedTask]) -> tuple[list[PlannedTask], list[Revision]]:
    """Return planned tasks without the questions to a conversation, and these as tasks that go on with it."""
    tasks: list[PlannedTask] = []
    questions: list[Revision] = []
    for item in planned:
        asked = item.context.get(ASKS)
        if not isinstance(asked, str) or not item.key.startswith(CALL_KEY):
            tasks.append(item)
            continue
        task = await turn.swarm.board.get(asked)
        if task.session_hash != turn.task.session_hash:
            raise InvalidInput(f"task {asked} is of another session: it cannot be asked")
        words = f"The {turn.task.assigned_to} asks you a question. Only answer it, and change nothing: "
        asks = fence_lines(item.handoff_reason, f"the agent {turn.task.assigned_to}")
        questions.append(Revision(task, f"{words}{asks}", item.key))
    return tasks, questions
