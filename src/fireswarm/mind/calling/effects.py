"""Effects of calls: which of them may have changed something."""

from __future__ import annotations

from fireswarm.contracts.llm.chat import ToolCall
from fireswarm.contracts.llm.decision import StepExecutionResult, StepStatus
from fireswarm.llm.calls import RUN_COMMAND
from fireswarm.mind.actions import Actor
from fireswarm.mind.calling.specs import DELEGATE
from fireswarm.mind.commands.background import STOP_COMMAND
from fireswarm.mind.guard import may_write


def may_have_changed(call: ToolCall, result: StepExecutionResult | None, actor: Actor, skill: str) -> bool:
    """Return True for a call of a tool that writes if it was executed, also in vain. *skill* is the selected one.

    A command that is confined to reading changes nothing, unless the task has a folder for outputs.
    """
    if result is None or result.status is StepStatus.REFUSED:
        return call.name in (DELEGATE, STOP_COMMAND)
    if call.name == RUN_COMMAND and actor.assignment.outputs is None:
        command, selected = str(call.input.get("command")), actor.catalog.skills.get(skill)
        return may_write(command, actor.profile, selected, actor.place.cwd)
    return True
