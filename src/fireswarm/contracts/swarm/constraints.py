"""The limits of a task and of all tasks below it."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, Self

from pydantic import ConfigDict, Field, model_validator

from fireswarm.contracts.base import Contract, Stored, check_json
from fireswarm.contracts.skills.permissions import StricterPermissions


class Budget(Stored):
    """What a task may spend; that of an objective's first task holds for all tasks of the objective together."""

    tokens: int | None = Field(default=None, ge=1)
    usd: float | None = Field(default=None, gt=0)


class Constraints(Contract):
    """Limits that apply to a task and its subtasks; they are enforced where actions are executed, not in a prompt.

    ``timeout_seconds`` limits each command, skill and call of a tool, and the time in which a turn shows no progress.
    Unknown keys are preserved, since other programs may use them.
    """

    model_config = ConfigDict(extra="allow")

    demo_safe: bool = False
    read_only: bool = False
    timeout_seconds: float | None = Field(default=None, gt=0)
    permissions: StricterPermissions = Field(default=StricterPermissions(), exclude_if=operator.not_)

    @model_validator(mode="after")
    def _check_unknown_keys(self) -> Self:
        check_json(self.model_extra)
        return self

    def tighten(self, planned: Mapping[str, Any]) -> Constraints:
        """Return these limits together with those of a plan, which can only add or tighten limits.

        A key of another program keeps its value from here. Raises ValidationError for a malformed limit.
        """
        added = Constraints.model_validate(dict(planned))
        timeouts = [limit for limit in (self.timeout_seconds, added.timeout_seconds) if limit is not None]
        return Constraints.model_validate(
            (added.model_extra or {})
            | (self.model_extra or {})
            | {
                "demo_safe": self.demo_safe or added.demo_safe,
                "read_only": self.read_only or added.read_only,
                "timeout_seconds": min(timeouts, default=None),
                "permissions": self.permissions.and_also(added.permissions),
            }
        )
