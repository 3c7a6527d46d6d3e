"""Decide whether an action is allowed, needs a person's approval, or is refused. Pure but for links in paths.

The layers are the settings, the role card and the task. A ``deny`` rule of any layer decides first, then an ``ask``
rule of any layer, then an ``allow`` rule of the settings. What no rule names is allowed if it only reads; otherwise the
policy's default decides.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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
from fireswarm.settings.agent import PermissionSettings
from fireswarm.skills.allowed_tools import allowing_rule, naming_rule

DIGEST_CHARS = 16


class Verdict(StrEnum):
    """Decision on an action."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Action:
    """An action to decide on. *tool* is its name in rules; *argument* its command, path, address or skill.

    ``shown`` is exactly what would run; ``changes`` is False if it only reads; ``diff`` is the change of a file.
    """

    tool: str
    argument: str
    shown: str
    cwd: Path
    changes: bool = True
    others: tuple[str, ...] = ()
    diff: str = ""

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
        """Decide on an action. With ``yes``, everything that is not denied is allowed."""
        arguments = (action.argument, *action.others)
        deny, certain = naming_rule((*self.settings.deny, *self.stricter.deny), action.tool, arguments, action.cwd)
        if deny and certain:
            return Judgement(Verdict.DENY, f"the permissions deny {deny}")
        if self.yes:
            return ALLOWED
        if deny:
            return Judgement(Verdict.ASK, f"it may be what the permissions deny: {deny}")
        ask, certain = naming_rule((*self.settings.ask, *self.stricter.ask), action.tool, arguments, action.cwd)
        if ask:
            return Judgement(Verdict.ASK, f"the permissions ask for {ask}" if certain else f"it may be {ask}")
        if not action.changes or allowing_rule(self.settings.allow, action.tool, action.argument):
            return ALLOWED
        if self.default is Verdict.DENY:
            return Judgement(Verdict.DENY, "the permissions deny what no rule allows")
        return Judgement(self.default, "no rule allows it" if self.default is Verdict.ASK else "")


def policy_of(settings: PermissionSettings, auto: Verdict, *stricter: StricterPermissions, yes: bool = False) -> Policy:
    """Return the policy of a run; *auto* is the default's meaning if the settings leave it to the command."""
    combined = StricterPermissions()
    for rules in stricter:
        combined = combined.and_also(rules)
    default = auto if settings.default == "auto" else Verdict(settings.default)
    return Policy(settings, combined, default, yes)


def too_long(action: Action) -> str:
    """Return why a person cannot approve the action, or "": nothing is approved that was not shown whole."""
    if len(action.shown) <= MAX_RULE_CHARS:
        return ""
    return (
        f"it needs an approval and has {len(action.shown):,} characters, of which at most {MAX_RULE_CHARS:,} can be "
        "shown: take smaller steps, or put a script into a file"
    )


def questions_for(action: Action, place: str, because: str, clean: Callable[[str], str]) -> tuple[Question, Question]:
    """Return the questions that ask a person for approval: the decision, and an optional reason for the model.

    *clean* removes secrets.
    """
    shown = clean(_visible(action.shown))
    approval = Approval(
        tool=action.tool,
        shown=shown,
        diff=truncate(clean(action.diff), MAX_DIFF_CHARS),
        rule=clean(action.rule),
        because=clean(because),
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
    """Return the refusal that the model is told, or "" for an approval."""
    if answers.get(APPROVAL) != NO:
        return ""
    reason = str(answers.get(REASON) or "").strip()
    return f"a person denied this action{f': {reason}' if reason else ''}. Do not try it again in another form."


def input_text(inputs: Mapping[str, Any]) -> str:
    """Return the input of a tool or skill as it is shown for approval."""
    return json.dumps(inputs, ensure_ascii=False, sort_keys=True, default=str)


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
    plain = all(char.isprintable() or char in "\n\t" for char in text)
    return text if plain else json.dumps(text)[:MAX_RULE_CHARS]


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:DIGEST_CHARS]
