"""The plan that waits for a person: as YAML, and the changed plan out of such a text."""

from __future__ import annotations

from math import inf
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError

from fireswarm.contracts.base import command_line, explain_validation
from fireswarm.contracts.frontmatter import explain_yaml, load_yaml
from fireswarm.contracts.limits import shown_id
from fireswarm.contracts.skills.permissions import PLAN
from fireswarm.contracts.skills.skill import PlannedTask, Question
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import InvalidInput

_TASKS = TypeAdapter(tuple[PlannedTask, ...])


def find_plan(task: Task) -> Question:
    """Return the question for another plan. Raises InvalidInput if no plan waits."""
    plans = (item for item in task.questions if item.name == PLAN and isinstance(item.allowed.get("default"), list))
    asked = next((item for item in plans if _find_request(task, item) is not None), None)
    if asked is None:
        raise InvalidInput(
            f"no plan of task {task.task_id} waits for approval: `swarm submit --review-plan` asks for one, and "
            f"`{command_line('swarm', 'show', shown_id(task.task_id))}` prints the tasks of a plan that runs"
        )
    return asked


def request_for_plan(task: Task, asked: Question) -> str:
    """Return the id of the request for approval that *asked* belongs to."""
    return asked.key if (request := _find_request(task, asked)) is None else request.key


def _find_request(task: Task, asked: Question) -> Question | None:
    return next((item for item in task.questions if item.approval is not None and item.step == asked.step), None)


def list_planned(asked: Question) -> list[dict[str, Any]]:
    """Return the proposed tasks, each with its fields in the usual order, which a store does not keep."""
    tasks = [task for task in asked.allowed["default"] if isinstance(task, dict)]  # a hand may have written others
    return [{name: task[name] for name in PlannedTask.model_fields if name in task} for task in tasks]


def write_plan(asked: Question) -> str:
    """Return the proposed tasks as YAML, each text on one line: a secret is not found across a line."""
    return yaml.safe_dump(list_planned(asked), sort_keys=False, allow_unicode=True, width=inf)


def parse_plan(text: str) -> tuple[PlannedTask, ...]:
    """Return the tasks of a YAML text. Raises InvalidInput for a text that is no plan."""
    try:
        loaded = load_yaml(text)
    except yaml.YAMLError as error:
        raise InvalidInput(f"it is not YAML: {explain_yaml(error)}") from error
    if not isinstance(loaded, list):
        raise InvalidInput("it must be a list of tasks, each with key, assigned_to and objective")
    try:
        return _TASKS.validate_python(loaded)
    except ValidationError as error:
        raise InvalidInput(explain_validation(error)) from error
