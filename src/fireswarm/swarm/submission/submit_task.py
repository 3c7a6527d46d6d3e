"""Submit a task: the only way for programs, the command line, the HTTP API and mail."""

from __future__ import annotations

from fireswarm.contracts.swarm.task import Submitted, TaskSpec
from fireswarm.errors import ConfigError, InvalidInput
from fireswarm.pipelines.definition import SUFFIX
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.submission.check import check_role


async def submit_task(parts: SwarmParts, spec: TaskSpec) -> Submitted:
    """Check a task, then create it or find the one with its objective, context and session.

    Raises InvalidInput as ``check_task`` does, and all exceptions of ``Board.submit``.
    """
    check_task(parts, spec)
    return await parts.board.submit(spec)


def check_task(parts: SwarmParts, spec: TaskSpec) -> None:
    """Raise InvalidInput for a role, model, skill, check or capability that the role's turn would refuse later."""
    check_role(parts.roles, spec.assigned_to, spec.capabilities)
    if spec.skill is not None and not parts.has_skill(spec.skill):
        if spec.skill.endswith(SUFFIX):
            parts.pipelines.get(spec.skill.removesuffix(SUFFIX))
        raise InvalidInput(f"there is no skill {spec.skill!r}; omit it to let the role choose one")
    for check in spec.checks:
        if fault := parts.fault_of_check(check):
            raise InvalidInput(f"a check of the task cannot run: {fault}")
    try:
        parts.settings.model_of(spec.assigned_to, parts.roles[spec.assigned_to], spec)
    except ConfigError as error:
        raise InvalidInput(f"the model of the task cannot be used: {error}") from error
