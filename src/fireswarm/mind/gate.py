"""Decide whether a call may run. This is the only place that allows, asks or denies. Pure, except for links in paths.

A call passes three checks: the terms of the skills that bind the run, the profile of the run, and the rules of the
operator, the role card and the task. ``deny`` rules are checked first. A change that matches no ``allow`` rule gets the
default. ``ask`` does not override a denial: under ``default: deny``, an action that a person should decide on must also
be in ``allow``.

In a ``read_only`` run, commands have a read-only mount of the workspace and count as calls that change nothing. The
same is true in a ``demo_safe`` run, except for scripts of the skill in use.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fireswarm.contracts.grant import Grant, Verdict
from fireswarm.contracts.ports import SkillTerms
from fireswarm.contracts.skills.artifact import OUTPUT_VARIABLE
from fireswarm.contracts.skills.tool import Tool
from fireswarm.skills.allowed_tools import allowing_rule, denial_reason, naming_rule
from fireswarm.skills.command_line import Unreadable, Word, read_command_line

BASH, SKILL = "Bash", "Skill"
"""Names of commands and skills in rules."""

_HIDDEN = re.compile(r"\$\(|`|\n|\r")
"""Substitutions and further lines, in any position: some programs evaluate their arguments again."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call to decide on. *tool* is its name in rules; *argument* is the command, path, address or skill.

    ``name`` is the name that the model used; ``aliases`` are other names that rules can use. ``inputs`` belong to a
    tool or skill. ``writes`` is False if the call only reads. ``outputs_only`` is True if it writes only to the output
    folder of the task. ``skill`` is the skill whose code would run. ``cwd`` is the folder of a command, if it is not
    the workspace. ``note`` is shown with a command, ``diff`` is the change of a file. ``asks`` is the tool's own reason
    for an approval. An approval also names the ``role``, and the ``files`` that the call reads, each with its hash.
    """

    tool: str
    argument: str
    name: str = ""
    aliases: tuple[str, ...] = ()
    inputs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    writes: bool = True
    outputs_only: bool = False
    skill: SkillTerms | None = None
    cwd: Path | None = None
    note: str = ""
    diff: str = ""
    asks: str = ""
    role: str = ""
    files: tuple[str, ...] = ()

    @property
    def rule(self) -> str:
        """The rule that allows exactly this call."""
        return f"{self.tool}({self.argument})" if self.argument else self.tool


@dataclass(frozen=True, slots=True)
class Allow:
    """The call may run. ``writes`` is True if it may change the workspace."""

    writes: bool


@dataclass(frozen=True, slots=True)
class Deny:
    """The call may not run, and no person is asked."""

    reason: str


@dataclass(frozen=True, slots=True)
class Ask:
    """A person decides whether the call may run; *reason* says why that is necessary."""

    reason: str


Decision = Allow | Deny | Ask


def command_call(command: str, cwd: Path, note: str = "") -> Call:
    """Return a shell command as a call."""
    return Call(BASH, command, cwd=cwd, note=note)


def tool_call(tool: Tool, inputs: Mapping[str, Any]) -> Call:
    """Return the call of a tool. Rules match its path, pattern or address, and all texts in its input."""
    return Call(
        tool.spec_name or tool.name,
        argument_of(inputs),
        tool.name,
        tool.rule_names,
        inputs,
        writes=tool.writes,
        outputs_only=tool.outputs_only,
        asks=tool.asks,
    )


def argument_of(inputs: Mapping[str, Any]) -> str:
    """Return the part of a tool's input that rules match: its path, pattern or address."""
    return str(inputs.get("path") or inputs.get("pattern") or inputs.get("url") or "")


def skill_call(skill: SkillTerms, inputs: Mapping[str, Any]) -> Call:
    """Return the execution of a skill's code as a call."""
    return Call(SKILL, skill.name, skill.name, inputs=inputs, writes=skill.writes, skill=skill)


def read_call(path: str) -> Call:
    """Return the read access to a file as a call."""
    return Call("Read", path, writes=False)


def may_change(call: Call, grant: Grant) -> bool:
    """Return True if the call may change the workspace under the grant."""
    if call.tool == BASH:
        return grant.writes or (grant.profile == "demo_safe" and _runs_own_scripts(call, grant))
    return call.writes and not call.outputs_only


def decide(call: Call, grant: Grant) -> Decision:
    """Return whether the call is allowed, denied, or needs a person's approval.

    A new ``deny`` or ``ask`` rule, or the removal of an ``allow`` rule, never permits more. In a stricter profile a
    command may run without being asked for: it cannot write there.
    """
    changes = may_change(call, grant)
    if reason := _reason_by_terms(call, grant, changes):
        return Deny(reason)
    subject = (call.tool, (call.argument, *texts_in(call.inputs)), call.cwd or grant.cwd, call.aliases, grant.base)
    is_allowed = allowing_rule(grant.allow, call.tool, call.argument, call.cwd or grant.cwd, call.aliases)
    denied = naming_rule((*grant.deny, *grant.stricter.deny), *subject)
    asked = naming_rule((*grant.ask, *grant.stricter.ask), *subject)
    default = Verdict.ALLOW
    by_default = changes or (call.tool == BASH and grant.default is Verdict.DENY)  # the same in every profile
    if by_default and not is_allowed:
        default = grant.default
    reason = ""
    if denied[0] and (denied[1] or grant.yes):  # nobody is asked about a possible match
        return Deny(f"the permissions deny {denied[0]}" if denied[1] else f"it could match the deny rule {denied[0]}")
    if default is Verdict.DENY:
        return Deny("no rule allows this, and the default is deny")
    if denied[0]:
        reason = f"it could match the deny rule {denied[0]}"
    elif asked[0]:
        reason = f"the permissions ask for {asked[0]}" if asked[1] else f"it could match the ask rule {asked[0]}"
    elif default is Verdict.ASK or call.asks:
        reason = call.asks or "no rule allows it"
    elif call.skill is not None and call.skill.is_material and not is_allowed:  # whatever it says of itself
        reason = "this skill is of the folder, and you have not trusted it"
    return Ask(reason) if reason and not grant.yes else Allow(changes)


def texts_in(inputs: Mapping[str, Any]) -> tuple[str, ...]:
    """Return all texts in an input: any of them may be a path or address that a rule matches."""
    texts: list[str] = []
    pending: list[Any] = [inputs]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, Mapping):
            pending.extend(value.values())
        elif isinstance(value, (list, tuple)):
            pending.extend(value)
    return tuple(texts)


def _reason_by_terms(call: Call, grant: Grant, changes: bool) -> str:
    """Return why the skills or the profile of the run forbid the call, or ""."""
    if call.skill is not None:
        return _reason_against_code(call.skill, grant)
    for skill in (grant.skill, grant.named):
        if skill is not None and (reason := _reason_by_skill(call, skill)):
            return reason
    if call.tool == BASH:
        return _reason_against_command(call, grant, changes)
    if changes and not grant.writes:
        return f"the task is {grant.profile}: {call.name or call.tool} writes and is not allowed"
    return ""


def _reason_against_code(skill: SkillTerms, grant: Grant) -> str:
    """Return why the code of *skill* may not run, or ""."""
    if reason := _reason_against_outside_scripts(skill, grant):
        return reason
    if grant.profile == "read_only" and not skill.respects_read_only:
        return (
            f"the task is read_only, and skill {skill.name!r} has code that may write: its metadata has neither "
            'writes: "false" (it changes only its output folder) nor writes: "unless_read_only"'
        )
    return ""


def _reason_against_outside_scripts(skill: SkillTerms, grant: Grant) -> str:
    if not skill.outside or grant.runs_outside_scripts:
        return ""
    return f"no code of skill {skill.name!r} may run: {skill.outside[0]} (`skills.outside_scripts: warn` allows it)"


def _reason_against_command(call: Call, grant: Grant, changes: bool) -> str:
    if grant.skill is not None and (reason := _reason_against_outside_scripts(grant.skill, grant)):
        return reason
    if "\0" in call.argument:
        return "a command cannot contain zero bytes"
    if not changes and not grant.confined:
        return f"the task is {grant.profile}, which requires confined commands, but runtime.confinement is none"
    return ""


def _reason_by_skill(call: Call, skill: SkillTerms) -> str:
    """Return why the allowed tools of *skill* forbid a call, or "".

    A tool that stores results is also allowed if ``Write`` covers the file that it creates in the output folder and
    ``Read`` covers the file that it copies, if any.
    """
    reason = denial_reason(skill.allowed_tools, call.tool, call.argument, call.aliases)
    if reason and call.outputs_only and call.tool == call.name:
        stored = f"${OUTPUT_VARIABLE}/{call.inputs.get('name') or ''}"
        source = str(call.inputs.get("path") or "")
        may_read = not source or not denial_reason(skill.allowed_tools, "Read", source)
        if may_read and not denial_reason(skill.allowed_tools, "Write", stored):
            return ""
    return reason or ""


def _runs_own_scripts(call: Call, grant: Grant) -> bool:
    """Return True if a command consists of scripts of the skill in use. What then runs is a copy of these scripts."""
    return grant.skill is not None and bool(own_scripts(replace(call, cwd=call.cwd or grant.cwd), grant.skill))


@dataclass(frozen=True, slots=True)
class NamedScript:
    """A script in a command: its word as it is written, where that begins and ends, and the file that it names."""

    text: str
    start: int
    end: int
    place: Path


def own_scripts(call: Call, skill: SkillTerms) -> list[NamedScript]:
    """Return the scripts of *skill* that a command runs, or [] if it runs anything else or computes a word."""
    if _HIDDEN.search(call.argument):
        return []
    try:
        read = read_command_line(call.argument)
    except Unreadable:
        return []
    if any(word.expands or word.globbed for line in read.commands for word in line):
        return []
    found = [
        _own_script(words, places, skill, call.cwd) for words, places in zip(read.commands, read.places, strict=True)
    ]
    scripts = [script for script in found if script is not None]
    return scripts if len(scripts) == len(found) else []


def _own_script(
    words: list[Word], places: list[tuple[int, int]], skill: SkillTerms, cwd: Path | None
) -> NamedScript | None:
    """Return the script of ``python scripts/x.py ...``, resolved as the shell in *cwd* would, if it is of *skill*."""
    by_name = words[0].text in ("python", "python3", "bash", "sh") and len(words) > 1
    word, (start, end) = (words[1], places[1]) if by_name else (words[0], places[0])
    if "=" in words[0].text or word.text.startswith("-"):
        return None
    if not by_name and "/" not in word.text:  # the shell searches PATH for a bare name
        return None
    place = ((cwd or Path()) / word.text).resolve()
    is_own = place.is_file() and place.is_relative_to((skill.folder / "scripts").resolve())
    return NamedScript(word.text, start, end, place) if is_own else None
