"""The result of one call: recorded as it is, shown to the model as text, and listed in the event log."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fireswarm.contracts.base import Contract
from fireswarm.contracts.llm.chat import ToolCall
from fireswarm.contracts.llm.decision import StepStatus
from fireswarm.contracts.skills.artifact import Artifact, MediaBlock
from fireswarm.contracts.skills.skill import SkillResult

REFUSED_CODE = 126
"""Exit code of a denied call, the one that shells use for "cannot execute"."""

MAX_VALUE_CHARS = 4_000
"""Maximum size of an artifact's value in the model's prompt."""

MAX_SIGNALS_SHOWN = 30

Record = dict[str, Any]
"""A result as it is recorded: JSON without the fields that have their default value."""

SKIPPED: Record = {"text": "Skipped by the operator. An earlier run started this step; its output is unknown."}


RETRIED = ".r1"
"""Suffix of the name of a step that is executed again after a failure."""


@dataclass(frozen=True, slots=True)
class Step:
    """The step of one call. ``begun`` holds the kinds of records that an earlier start of the run wrote for it."""

    name: str
    call: ToolCall
    begun: frozenset[str] = frozenset()

    @property
    def input(self) -> dict[str, Any]:
        """The input that the model gave."""
        return self.call.input

    @property
    def question(self) -> str:
        """Name of the step in questions; a repeated step has the same name."""
        return self.name.removesuffix(RETRIED)

    def again(self, begun: frozenset[str]) -> Step:
        """Return the step of the same call after a failure."""
        return Step(f"{self.name}{RETRIED}", self.call, begun)


class CallResult(Contract):
    """The effect of a call. ``text`` is its output; ``errors`` and ``exit_code`` come from a command.

    ``acted`` is True if the gate decided on the call, ``changes`` if the call may have changed something. ``retry``
    counts repetitions. ``folder`` is the shell's folder after a command, ``started`` the id of a background command.
    ``artifacts`` were stored by a tool; ``skill_result`` is the result of a skill with code. ``note`` is shown at the
    end; ``recorded`` is True if the event log already has this call.
    """

    text: str = ""
    errors: str = ""
    exit_code: int = 0
    status: StepStatus = StepStatus.OK
    acted: bool = False
    changes: bool = False
    retry: int = 0
    media: tuple[MediaBlock, ...] = ()
    folder: str = ""
    started: str = ""
    artifacts: tuple[Artifact, ...] = ()
    skill_result: SkillResult | None = None
    note: str = ""
    recorded: bool = False

    @property
    def is_failure(self) -> bool:
        """True for a call that was executed and failed or timed out."""
        return self.status in (StepStatus.FAILED, StepStatus.TIMEOUT)

    def record(self) -> Record:
        """Return the result as it is recorded."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def render(self, *, command: bool) -> list[str]:
        """Return the parts of the result for the model: the exit code of a *command*, the output, the errors."""
        if self.status is StepStatus.REFUSED:
            return [f"refused: {self.errors}"]
        output, errors = (self.text.rstrip("\n"), self.errors.rstrip()) if command else (self.text, self.errors)
        code = f"[exit code {self.exit_code}]" if command and (self.exit_code or not output + errors) else ""
        return [
            part for part in (code, output, f"[stderr]\n{errors}" if command and errors else errors, self.note) if part
        ]


def fault(message: str) -> CallResult:
    """Return the result of a call that could not be made."""
    return CallResult(text=message, exit_code=1, status=StepStatus.FAILED)


def refusal(reason: str) -> CallResult:
    """Return the result of a call that was not allowed."""
    return CallResult(errors=reason, exit_code=REFUSED_CODE, status=StepStatus.REFUSED, acted=True)


def describe_skill_result(result: SkillResult) -> str:
    """Return a skill's result for the model: summary, insights, signals, artifacts with their small values."""
    artifacts: list[Mapping[str, Any]] = []
    for artifact in result.artifacts:
        shown = artifact.model_dump(mode="json", exclude_none=True, exclude={"value", "sha256"})
        value = json.dumps(artifact.value, ensure_ascii=False, default=str) if artifact.value is not None else ""
        if len(value) > MAX_VALUE_CHARS:
            value = f"{value[:MAX_VALUE_CHARS]} [cut: the value has {len(value):,} characters]"
        artifacts.append(shown | ({"value": value} if value else {}))
    content = {
        "state": result.state.value,
        "summary": result.summary,
        "insights": list(result.insights),
        "signals": [signal.model_dump(mode="json") for signal in result.signals[:MAX_SIGNALS_SHOWN]],
        "artifacts": artifacts,
        "confidence": result.confidence,
    }
    return json.dumps({key: value for key, value in content.items() if value}, ensure_ascii=False)
