"""Permission rules and requests for approval.

A rule has the syntax of ``allowed-tools``: ``Bash(git push:*)``, ``Write(docs/**)``, ``WebFetch(domain:x.org)``,
``mcp__github``, ``Skill(deploy)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from fireswarm.contracts.base import Contract
from fireswarm.contracts.linear_pattern import match_glob
from fireswarm.errors import ConfigError

MAX_RULES = 200
MAX_RULE_CHARS = 8_000
"""Maximum length of a rule, and of a command that a person can approve."""

MAX_DIFF_CHARS = 40_000

MAX_NAMED_FILES = 20
"""Files of an action that a request for approval names one by one; further ones have one hash together."""

APPROVE = "approve"
"""Name of the steps in which a person decides, and prefix of the names under which the answers are stored."""

ADVISE = "advice"
"""Prefix of the names under which a person's advice to a step of a pipeline is stored, in place of the model's."""

APPROVAL, REASON, PLAN = "approval", "reason", "plan"
PLAN_TOOL = "Plan"
"""Tool of a request for the approval of a plan."""
"""Names of the two questions of an approval: the decision, and an optional reason for the model."""

YES, ALWAYS, NO = "yes", "always", "no"
"""The decisions. ``always`` also allows the same action of the same role in the same folder: later in this task, and in
the tasks that it plans."""


PATH_TOOLS = frozenset(
    {
        *("read", "write", "edit", "glob", "grep"),
        *("read_file", "write_file", "edit_file", "list_files", "search_files"),
    }
)
"""Tools whose rules have the pattern of a path."""


def _check_rule(rule: str) -> str:
    rule = rule.strip()
    if not rule or rule.startswith("(") or ("(" in rule) != rule.endswith(")"):
        raise ValueError(f"{rule!r} is not a rule: write TOOL or TOOL(PATTERN), such as Bash(git push:*)")
    name, _, pattern = rule.removesuffix(")").partition("(")
    if name != name.strip():
        raise ValueError(f"{rule!r} has a space before its bracket, so it would name no tool")
    if name.casefold() in PATH_TOOLS and (reason := _path_fault(pattern.strip())):
        raise ValueError(f"{rule!r} would match nothing: {reason}")
    return rule


def _path_fault(pattern: str) -> str:
    """Return why the path of a rule could never match a path, or ""."""
    if ".." in pattern.replace("\\", "/").split("/"):
        return "a path with .. fits no file, so name the folder from the workspace or from /"
    if "://" in pattern or pattern.casefold().startswith("file:"):
        return "it is an address, so give a path"
    if pattern.startswith(("$", '"', "'")) or (pattern.startswith("~") and pattern[1:2] not in ("", "/")):
        return "variables, quotes and homes of others are not replaced, so write the path itself"
    if "\\" in pattern:
        return "folders are separated by /"
    try:
        match_glob(pattern, "")
    except ConfigError as error:
        return str(error)
    return ""


Rule = Annotated[str, Field(max_length=MAX_RULE_CHARS), AfterValidator(_check_rule)]
Rules = Annotated[tuple[Rule, ...], Field(max_length=MAX_RULES)]


class StricterPermissions(Contract):
    """Rules that add restrictions. A role card or a task may have them; they cannot allow what the settings deny."""

    ask: Rules = ()
    deny: Rules = ()

    def __bool__(self) -> bool:
        """Return False if there is no rule."""
        return bool(self.ask or self.deny)

    def and_also(self, other: StricterPermissions) -> StricterPermissions:
        """Return the rules of both."""
        return StricterPermissions(
            ask=tuple(dict.fromkeys((*self.ask, *other.ask))), deny=tuple(dict.fromkeys((*self.deny, *other.deny)))
        )


def lasting_approvals(answered: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the answers that also apply to planned tasks: those with ``always``."""
    return {
        place: dict(answers)
        for place, answers in answered.items()
        if place.startswith(f"{APPROVE}/") and answers.get(APPROVAL) == ALWAYS
    }


class Approval(Contract):
    """An action that waits for a person's approval.

    ``shown`` is exactly what would run: the command line, or the input of the tool or skill as JSON. ``diff`` is
    the change of a file as a unified diff; ``whole_diff`` is the path or URI of all of it if ``diff`` is cut.
    ``rule`` is the rule that ``always`` would allow, in ``folder`` and for ``role`` only; ``because`` is the reason
    for asking. ``files`` are the files of the workspace that the action names, each with its hash. ``changed`` is
    True if the action or one of these files was another one when the question was asked first.
    """

    tool: str = Field(max_length=200)
    shown: str = Field(max_length=MAX_RULE_CHARS)
    diff: str = Field(default="", max_length=MAX_DIFF_CHARS + 2_000)
    whole_diff: str = Field(default="", max_length=1_000)
    rule: str = Field(default="", max_length=MAX_RULE_CHARS + 200)
    because: str = Field(default="", max_length=MAX_RULE_CHARS + 200)
    folder: str = Field(default="", max_length=MAX_RULE_CHARS)
    role: str = Field(default="", max_length=200)
    files: tuple[str, ...] = Field(default=(), max_length=MAX_NAMED_FILES + 1)
    changed: bool = False
