"""A recording of several conversations, of one or more roles, used as a scripted model.

The file is JSON: ``{"conversations": [{"role": ..., "answers": [...]}]}``. The system text of a conversation has the
heading ``# ROLE``. With ``told``, one of its messages to the model has this text; the first conversation that fits is
used. Its answers have the form of the scripted model (`providers.scripted`); ``expects`` is a text that the previous
message must contain, so that an outdated recording fails instead of producing a wrong report.
``$WORKSPACE`` in an answer is replaced by the folder of the run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from fireswarm.contracts.llm.chat import ChatRequest
from fireswarm.errors import ConfigError, ModelRejected

WORKSPACE = "$WORKSPACE"
_WORKSPACE_LINE = re.compile(r"(?m)^Workspace: (.+)$")


@dataclass(frozen=True, slots=True)
class RecordedConversation:
    """The answers of one conversation: of a role, and of a task whose model is told the text ``told``."""

    role: str
    answers: Sequence[Mapping[str, Any]]
    told: str = ""

    def fits(self, request: ChatRequest) -> bool:
        """Return True if *request* belongs to this conversation."""
        said = (message.text for message in request.messages if message.role == "user")
        return _has_heading(request.system, self.role) and any(self.told in text for text in said)


class Recording:
    """A script for a model that calls tools: the answers of each conversation in order."""

    tools = True

    def __init__(self, conversations: Sequence[RecordedConversation]) -> None:
        self._conversations = conversations

    def __call__(self, request: ChatRequest) -> Any:
        """Return the next answer of the role to which *request* belongs. Raises ModelRejected if no role matches."""
        found = next((each for each in self._conversations if each.fits(request)), None)
        if found is None:
            known = ", ".join(dict.fromkeys(each.role for each in self._conversations))
            raise ModelRejected(f"the recording has no conversation of this role and task; it has {known}")
        role, answers = found.role, found.answers
        if request.for_summary:
            return f"{role} has given {request.answers} of {len(answers)} answers."
        if request.answers >= len(answers):
            raise ModelRejected(
                f"the recording has {len(answers)} answers of {role}, and this is call {request.answers + 1}"
            )
        answer = dict(answers[request.answers])
        expected, last = str(answer.pop("expects", "")), request.messages[-1]
        told = "\n".join([last.text, *(output.text for output in last.outputs)])
        if expected not in told:
            raise ModelRejected(
                f"the recording of {role} does not fit: {expected!r} is not in the last message:\n{told}"
            )
        workspace = _WORKSPACE_LINE.search(request.messages[0].text)
        return json.loads(json.dumps(answer).replace(WORKSPACE, json.dumps(workspace[1])[1:-1] if workspace else "."))


def recording_of(content: Mapping[str, Any], path: Path) -> Callable[[ChatRequest], Any]:
    """Return the script of a recording read from *path*. Raises ConfigError with the reason."""
    conversations: list[RecordedConversation] = []
    listed = content.get("conversations")
    for item in cast("list[Any]", listed) if isinstance(listed, list) else []:
        fields = cast("Mapping[str, Any]", item) if isinstance(item, dict) else {}
        role, answers, told = fields.get("role"), fields.get("answers"), fields.get("told", "")
        fits = isinstance(role, str) and isinstance(answers, list) and isinstance(told, str)
        if not fits or not all(isinstance(answer, dict) for answer in cast("list[Any]", answers)):
            raise ConfigError(
                f"model.script: {path}: a conversation needs role, a string, and answers, a list of objects"
            )
        conversations.append(RecordedConversation(str(role), cast("list[Mapping[str, Any]]", answers), str(told)))
    if not conversations:
        raise ConfigError(f"model.script: {path} must hold a list of answers, or an object with conversations")
    return Recording(conversations)


def _has_heading(system: str, role: str) -> bool:
    return f"# {role}" in (line.rstrip() for line in system.splitlines())
