"""Decide whether an action is allowed, needs a person's approval, or is refused. Pure but for links in paths.

In the settings, a ``deny`` rule decides first, then an ``ask`` rule, then an ``allow`` rule. What no rule names is
allowed if it only reads; otherwise the default decides. Rules of the role card and of the task only make it stricter.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from fireswarm.contracts.limits import MAX_RESULT_SUMMARY_CHARS, truncate
from fireswarm.contracts.skills.permissions import (
    ALWAYS,
    APPROVAL,
    APPROVE,
    MAX_DIFF_CHARS,
    MAX_RULE_CHARS,
    NO,
    REASON,
    YES,
    Approval,
    StricterPermissions,
)
from fireswarm.contracts.skills.skill import Question
from fireswarm.contracts.skills.tool import Tool
from fireswarm.errors import FireswarmError, InvalidInput, LeaseLost
from fireswarm.mind.guard import tool_argument
from fireswarm.redaction import shows, spell
from fireswarm.settings.agent import PermissionSettings
from fireswarm.skills.allowed_tools import allowing_rule, naming_rule

DIGEST_CHARS = 16


class Verdict(StrEnum):
    """Decision on an action, from the mildest to the strictest."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Action:
    """An action to decide on. *tool* is its name in rules; *argument* its command, path, address or skill.

    ``aliases`` are further names in rules.
    ``shown`` is exactly what would run; ``changes`` is False if it only reads; ``diff`` is the change of a file.
    """

    tool: str
    argument: str
    shown: str
    cwd: Path
    changes: bool = True
    others: tuple[str, ...] = ()
    diff: str = ""
    aliases: tuple[str, ...] = ()

    @property
    def rule(self) -> str:
        """The rule that allows exactly this action."""
        return f"{self.tool}({self.argument})" if self.argument else self.tool

    def place(self, step: str) -> str:
        """Return where the answer is kept: bound to the step, to what would run, and to the change that was shown."""
        return f"{APPROVE}/{_digest(self.rule)}/{step}/{_digest(self.tool, self.shown, self.diff)}"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict and its reason."""

    verdict: Verdict
    because: str = ""


ALLOWED = Judgement(Verdict.ALLOW)


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of one run: those of the settings, and the stricter ones of the role card and the task."""

    settings: PermissionSettings = PermissionSettings()
    stricter: StricterPermissions = StricterPermissions()
    default: Verdict = Verdict.ALLOW
    yes: bool = False

    def judge(self, action: Action) -> Judgement:
        """Decide on an action: the stricter of the settings' verdict and that of the role card and the task.

        With ``yes``, everything that is not denied is allowed.
        """
        own = _by_rules(action, self.settings.deny, self.settings.ask)
        allowed = allowing_rule(self.settings.allow, action.tool, action.argument, action.aliases)
        if own is ALLOWED and action.changes and not allowed:
            own = _DEFAULTS[self.default]
        judged = max(own, _by_rules(action, self.stricter.deny, self.stricter.ask), key=_strictness)
        return ALLOWED if self.yes and judged.verdict is Verdict.ASK else judged


_DEFAULTS = {
    Verdict.ALLOW: ALLOWED,
    Verdict.ASK: Judgement(Verdict.ASK, "no rule allows it"),
    Verdict.DENY: Judgement(Verdict.DENY, "the permissions deny what no rule allows"),
}


def _strictness(judged: Judgement) -> int:
    return list(Verdict).index(judged.verdict)


def _by_rules(action: Action, deny: Sequence[str], ask: Sequence[str]) -> Judgement:
    """Return the verdict of the rules. An action that may be a denied one is asked for."""
    arguments = (action.argument, *action.others)
    rule, certain = naming_rule(deny, action.tool, arguments, action.cwd, action.aliases)
    if rule and certain:
        return Judgement(Verdict.DENY, f"the permissions deny {rule}")
    if rule:
        return Judgement(Verdict.ASK, f"it may be what the permissions deny: {rule}")
    rule, certain = naming_rule(ask, action.tool, arguments, action.cwd, action.aliases)
    if rule:
        return Judgement(Verdict.ASK, f"the permissions ask for {rule}" if certain else f"it may be {rule}")
    return ALLOWED


class PreviewFailed(Exception):
    """Says that a call would fail, so that a person is not asked to approve it. *failing* is the tool that fails so."""

    def __init__(self, tool: Tool, reason: str) -> None:
        super().__init__(reason)

        async def fail(inputs: Mapping[str, Any]) -> Any:
            raise InvalidInput(reason)

        self.failing = replace(tool, run=fail)


async def preview_of(tool: Tool, inputs: Mapping[str, Any], policy: Policy, cwd: Path) -> str:
    """Return the change that a call would make, or "" if its tool has no preview. Raises PreviewFailed.

    The error shows no passage of a file that the policy does not let the model read without a question.
    """
    try:
        return await tool.preview(inputs) if tool.preview is not None else ""
    except LeaseLost:
        raise
    except Exception as error:  # foreign code may raise anything; the call would fail in the same way
        read = Action("Read", path := tool_argument(inputs), path, cwd, changes=False)
        reason = error_text(error)
        if policy.judge(read).verdict is not Verdict.ALLOW:
            reason = reason.partition("\n")[0]
        raise PreviewFailed(tool, reason) from error


def error_text(error: Exception) -> str:
    """Return an error's message; the type precedes one of foreign code."""
    return str(error) if isinstance(error, FireswarmError) else f"{type(error).__name__}: {error}"


def policy_of(settings: PermissionSettings, auto: Verdict, *stricter: StricterPermissions, yes: bool = False) -> Policy:
    """Return the policy of a run; *auto* is the default's meaning if the settings leave it to the command."""
    combined = StricterPermissions()
    for rules in stricter:
        combined = combined.and_also(rules)
    default = auto if settings.default == "auto" else Verdict(settings.default)
    return Policy(settings, combined, default, yes)


def too_long(action: Action, clean: Callable[[str], str]) -> str:
    """Return why a person cannot approve the action, or "": nothing is approved that was not shown whole.

    *clean* removes secrets.
    """
    length = max(len(clean(_visible(action.shown))), len(action.shown))
    if length <= MAX_RULE_CHARS:
        return ""
    return (
        f"it needs an approval and has {length:,} characters as it would be shown, of which at most "
        f"{MAX_RULE_CHARS:,} can be: take smaller steps, or put a script into a file"
    )


def questions_for(action: Action, place: str, because: str, clean: Callable[[str], str]) -> tuple[Question, Question]:
    """Return the questions that ask a person for approval: the decision, and an optional reason for the model.

    *clean* removes secrets.
    """
    shown = clean(_visible(action.shown))
    approval = Approval(
        tool=action.tool,
        shown=shown,
        diff=truncate(clean(spell(action.diff)), MAX_DIFF_CHARS),
        rule=truncate(clean(spell(action.rule)), MAX_RULE_CHARS),
        because=truncate(clean(spell(because)), MAX_RULE_CHARS),
    )
    decision = Question(
        name=APPROVAL,
        description=truncate(f"Allow {action.tool}: {shown}", MAX_RESULT_SUMMARY_CHARS),
        allowed={"enum": [YES, ALWAYS, NO]},
        step=place,
        approval=approval,
    )
    reason = Question(name=REASON, description="a reason for the model", required=False, step=place)
    return decision, reason


def spoken(said: str | None) -> dict[str, Any] | None:
    """Return the answers in a person's word at a terminal: yes, always, or no with a reason after a colon."""
    if said is None:
        return None
    word, _, reason = said.partition(":")
    decision = word.strip().lower()
    return {APPROVAL: decision if decision in (YES, ALWAYS) else NO, REASON: reason.strip()}


def decision_on(action: Action, place: str, answered: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the answers at *place*, or an earlier ``always`` for the action's rule; None if there are none."""
    given = answered.get(place)
    if given and given.get(APPROVAL) in (YES, ALWAYS, NO):
        return given
    always = f"{APPROVE}/{_digest(action.rule)}/"
    for place, answers in answered.items():
        if place.startswith(always) and answers.get(APPROVAL) == ALWAYS:
            return answers
    return None


def refusal_reason(answers: Mapping[str, Any]) -> str:
    """Return the refusal in the words of the person who decided, or "" for an approval."""
    if answers.get(APPROVAL) != NO:
        return ""
    reason = str(answers.get(REASON) or "").strip()
    return f"a person denied this action{f': {reason}' if reason else ''}"


def input_text(inputs: Mapping[str, Any]) -> str:
    """Return the input of a tool or skill as it is shown for approval: JSON without characters that hide others."""
    return spell(json.dumps(inputs, ensure_ascii=False, sort_keys=True, default=str))


def text_values(inputs: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the texts in an input: any of them may be the path or address that a rule names."""
    found: list[str] = []
    pending: list[Any] = [inputs]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, Mapping):
            pending.extend(value.values())
        elif isinstance(value, (list, tuple)):
            pending.extend(value)
    return tuple(found)


def _visible(text: str) -> str:
    """Return the text as it is, or as JSON if it has characters that a screen does not show."""
    return text if shows(text) else json.dumps(text)


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:DIGEST_CHARS]
