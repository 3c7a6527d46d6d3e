"""The fields of a new task as arguments: typed for checkers, with a hint for a misspelt name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Any, TypedDict

from pydantic import ValidationError

from fireswarm.contracts.base import explain_validation
from fireswarm.contracts.model_choice import Effort
from fireswarm.contracts.skills.artifact import Attachment
from fireswarm.contracts.skills.capability import CapabilityUse
from fireswarm.contracts.skills.skill import Check
from fireswarm.contracts.swarm.constraints import Constraints
from fireswarm.contracts.swarm.task import AnyTask, ChildFailure, TaskSpec
from fireswarm.errors import InvalidInput


class TaskFields(TypedDict, total=False):
    """Further fields of a TaskSpec, for the methods of a client that take an objective."""

    session_hash: str
    created_by: str
    skill: str | None
    model: str | None
    effort: Effort | None
    fallback: Sequence[str] | str | None
    constraints: Constraints | Mapping[str, Any]
    capabilities: Sequence[CapabilityUse]
    attachments: Sequence[Attachment]
    priority: int
    deadline: datetime | None
    max_attempts: int
    on_child_failure: ChildFailure | str
    depends_on: Sequence[AnyTask]
    handoff_reason: str
    expected_outcome: str
    checks: Sequence[Check]
    max_revisions: int
    review_plan: bool
    fresh_key: str
    instructions: str
    for_agent: str | None
    message_id: str


ARGUMENTS = ("role", "timeout_seconds")
"""Arguments of a client's methods that are not fields; they are proposed for a misspelt name too."""


def make_spec(**fields: Any) -> TaskSpec:
    """Return a TaskSpec of *fields*. Raises InvalidInput with all errors in them."""
    if unknown := [name for name in fields if name not in TaskSpec.model_fields]:
        near = {name: get_close_matches(name, (*TaskSpec.model_fields, *ARGUMENTS), 1) for name in unknown}
        named = (f"{name} (did you mean {near[name][0]}?)" if near[name] else name for name in unknown)
        raise InvalidInput(f"task not submitted: a task has no field {', '.join(named)}")
    try:
        return TaskSpec(**fields)
    except ValidationError as error:
        raise InvalidInput(f"task not submitted: {explain_validation(error, show_given=True)}") from error
