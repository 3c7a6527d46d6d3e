"""A task of the stand-alone agent, and its record in the folder of its run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fireswarm.errors import InvalidInput
from fireswarm.redaction import Redactor
from fireswarm.runs.sinks.seal import TASK_FILE


@dataclass(frozen=True, slots=True)
class AgentTask:
    """One task for the stand-alone agent.

    ``yes`` approves every call that no rule denies.
    """

    task: str
    skill: str | None = None
    context: Mapping[str, Any] = field(default_factory=dict)
    session: str = "default"
    dry_run: bool = False
    yes: bool = False

    @classmethod
    def of_run(cls, folder: Path) -> AgentTask:
        """Return the task of a run from its folder.

        Raises InvalidInput if it is missing or damaged, or if the run worked in another folder than the current one.
        """
        path = folder / TASK_FILE
        try:
            content = json.loads(path.read_bytes())
            worked_in = content.pop("cwd")
            task = cls(**content)
        except (OSError, ValueError, TypeError, AttributeError, KeyError) as error:
            raise InvalidInput(f"{path} cannot be read, so the run cannot be resumed: {error}") from error
        if worked_in != str(Path.cwd()):
            raise InvalidInput(f"run {folder.name} worked in {worked_in}: resume it there")
        return task

    def keep(self, folder: Path, redact: Redactor) -> None:
        """Write the task into the folder of its run, without secrets."""
        content = {"cwd": str(Path.cwd()), **redact.value(asdict(self))}
        (folder / TASK_FILE).write_text(json.dumps(content, ensure_ascii=False, default=str), encoding="utf-8")
