"""Answers to a run's questions from options, and the open questions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fireswarm.agent.run import Watching
from fireswarm.cli.agent.ask import decision_of
from fireswarm.contracts.base import command_line
from fireswarm.contracts.skills.permissions import APPROVAL
from fireswarm.contracts.skills.skill import Question, choice_of
from fireswarm.errors import InvalidInput
from fireswarm.mind import Conclusion, Steering

if TYPE_CHECKING:
    from fireswarm.cli.shared.console import CleanConsole

OPTION = "--resume-answer"


@dataclass(slots=True)
class GivenAnswers:
    """Answers by the names of their questions, and a message to the model. Each is removed once it is used."""

    answers: dict[str, Any]
    message: Steering = field(default_factory=Steering)
    refused: list[str] = field(default_factory=list[str])

    @classmethod
    def parse(cls, options: Sequence[str], message: str = "") -> GivenAnswers:
        """Parse answers from options, ``name=value`` each. Raises InvalidInput."""
        from fireswarm.cli.shared.options import pairs

        if bad := next((answer for answer in options if "=" not in answer), ""):
            raise InvalidInput(f"{OPTION} {bad!r}: write name=value")
        given = dict(pairs(options, OPTION)) if options else {}
        for name in [name for name in given if name.partition(".")[0] == APPROVAL]:
            if not (decision := decision_of(str(given[name]))):
                raise InvalidInput(f"{OPTION} {name}={given[name]}: write yes, always, or no and a reason")
            given[name] = decision
        return cls(given, Steering(message, stopped=not given))

    def watching(self, watching: Watching) -> Watching:
        """Return the callbacks with these answers and the message.

        The message replies to the last answer of the run, or to stopped work: actions that had not ended are skipped.
        """
        person = watching.ask

        async def ask(question: Question) -> str | None:
            if (name := self._name_of(question)) in self.answers:
                value = self.answers.pop(name)
                said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                if (answer := said if question.approval else choice_of(question, said)) is not None:
                    return answer
                self.refused.append(f"{question.name}={said} is not a choice: {question.shown_choices}")
            return await person(question) if person is not None else None

        async def next_message(answer: str) -> str | None:
            return self.message.take() or None

        asks = ask if self.answers else person
        return replace(watching, ask=asks, next_message=next_message, steering=self.message)

    def _name_of(self, question: Question) -> str:
        """Return the name of the answer to a question. An approval without an id is left out if the action changed."""
        named = name_of(question)
        if named in self.answers or question.approval is None:
            return named
        if question.approval.changed and question.name in self.answers:
            self.answers.pop(question.name)
            self.refused.append(f"the action or its files changed since the question: answer it with {named}=...")
        return question.name

    def fault(self, conclusion: Conclusion) -> str:
        """Return the error in the answers, or ""."""
        if self.refused:
            return "; ".join(self.refused)
        if self.message.text:
            return f"the message was not delivered: the run is {conclusion.status}. Send it when that is resolved."
        if not self.answers:
            return ""
        names = ", ".join(question.name for question in conclusion.questions) or "none"
        return f"no open question is named {', '.join(self.answers)}; open questions: {names}"


def name_of(question: Question) -> str:
    """Return the name by which an option answers a question. That of an approval has the hash of what was shown."""
    return f"{question.name}.{question.step.rpartition('/')[2]}" if question.approval is not None else question.name


def say_waiting(conclusion: Conclusion, run_id: str, console: CleanConsole) -> None:
    """Print the questions of a run without a person at a terminal, and the command that answers them."""
    from fireswarm.cli.watch.approval_view import draw_approval

    approvals = [question for question in conclusion.questions if question.approval is not None]
    for question in approvals:
        draw_approval(question, console, always=f"{OPTION} {name_of(question)}=always")
    command = command_line("agent", "resume", run_id)
    if approvals:
        option = f"{OPTION} {name_of(approvals[0])}=yes"
        hint = (
            f"Continue in a terminal to be asked (`{command}`), answer with `{command} {option}` "
            f"(always, or no and a reason), add the rule to permissions.allow in agent.yaml, or allow all: --yes"
        )
        console.prose(hint)
        return
    for question in conclusion.questions:
        console.prose(f"needs {question.name}: {question.description}")
        if question.options:
            console.prose(f"  one of: {question.shown_choices}")
    answers = " ".join(f"{OPTION} {command_line(question.name)}=..." for question in conclusion.questions)
    console.print(f"Answer it: {command} {answers}", markup=False, soft_wrap=True)
