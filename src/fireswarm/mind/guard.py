"""Permissions of actions, checked where they are executed: constraints, profile, and allowed-tools. Pure.

A command of a ``read_only`` task sees its workspace on a read-only mount, whatever it is. So does one of a
``demo_safe`` task, except for the selected skill's own scripts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from fireswarm.contracts.skills.artifact import OUTPUT_VARIABLE
from fireswarm.contracts.skills.tool import Tool
from fireswarm.contracts.swarm.task import Constraints
from fireswarm.skills.allowed_tools import denial_reason
from fireswarm.skills.command_line import Unreadable, read_command_line
from fireswarm.skills.packs.catalog import Skill

_HIDDEN = re.compile(r"\$\(|`|\n|\r")
"""Substitutions and further lines, anywhere: some programs evaluate their arguments again."""


def profile_of(constraints: Constraints, profile: str) -> str:
    """Return the stricter profile of the task and the runtime: permissive, demo_safe or read_only."""
    if constraints.read_only or profile == "read_only":
        return "read_only"
    return "demo_safe" if constraints.demo_safe or profile == "demo_safe" else "permissive"


def refuse_command(command: str, *skills: Skill | None) -> str:
    """Return the reason why *command* may not run, or "": each skill must allow it."""
    if "\0" in command:
        return "a command has no zero bytes"
    reasons = (denial_reason(skill.allowed_tools, "Bash", command) for skill in skills if skill is not None)
    return next((reason for reason in reasons if reason), "")


def refuse_outside_scripts(skill: Skill | None, outside_scripts: str) -> str:
    """Return the reason why nothing of *skill* may run, or "". *outside_scripts* is the setting: block or warn."""
    if skill is None or not skill.outside or outside_scripts != "block":
        return ""
    return f"nothing of skill {skill.name!r} is run: {skill.outside[0]} (`skills.outside_scripts: warn` allows it)"


def refuse_skill(skill: Skill, profile: str, outside_scripts: str) -> str:
    """Return the reason why a skill's code may not run, or "". *outside_scripts* is the setting: block or warn."""
    if reason := refuse_outside_scripts(skill, outside_scripts):
        return reason
    if profile == "read_only" and not skill.respects_read_only:
        return (
            f"the task is read_only, and skill {skill.name!r} has code that may write: its metadata says neither "
            'writes: "false" (it changes no file outside of its folder for outputs) nor writes: "unless_read_only"'
        )
    return ""


def may_write(command: str, profile: str, skill: Skill | None, cwd: Path) -> bool:
    """Return True if *command* may change the workspace."""
    return profile == "permissive" or (profile == "demo_safe" and _runs_own_scripts(command, skill, cwd))


def refuse_tool(tool: Tool, given: Mapping[str, object], profile: str, *skills: Skill | None) -> str:
    """Return the reason why *tool* may not be called, or "": each skill must allow it."""
    for skill in skills:
        if skill is not None and (reason := _denial_by_skill(tool, given, skill)):
            return reason
    if tool.writes and not tool.outputs_only and profile != "permissive":
        return f"the task is {profile}: {tool.name} writes and is not allowed"
    return ""


def _denial_by_skill(tool: Tool, given: Mapping[str, object], skill: Skill) -> str | None:
    """Return the reason why *skill* does not allow a call, or None.

    A tool that stores results is also allowed if ``Write`` is for the file in the output folder that it writes, and if
    ``Read`` is for the file that it takes, if any.
    """
    name = tool.spec_name or tool.name
    reason = denial_reason(skill.allowed_tools, name, tool_argument(given), tool.rule_names)
    if reason and tool.outputs_only and not tool.spec_name:
        stored = f"${OUTPUT_VARIABLE}/{given.get('name') or ''}"
        taken = str(given.get("path") or "")
        may_take = not taken or not denial_reason(skill.allowed_tools, "Read", taken)
        return None if may_take and not denial_reason(skill.allowed_tools, "Write", stored) else reason
    return reason


def tool_argument(given: Mapping[str, object]) -> str:
    """Return the part of a tool's input that rules are about: its path, pattern or address."""
    return str(given.get("path") or given.get("pattern") or given.get("url") or "")


def _runs_own_scripts(command: str, skill: Skill | None, cwd: Path) -> bool:
    """Return True if *command* consists of the selected skill's scripts, with arguments as they are written."""
    if _HIDDEN.search(command):
        return False
    try:
        commands = read_command_line(command).commands
    except Unreadable:
        return False
    words = [word for line in commands for word in line]
    if not words or any(word.expands or word.globbed for word in words):
        return False
    return all(_own_script([word.text for word in line], skill, cwd) for line in commands)


def _own_script(words: list[str], skill: Skill | None, cwd: Path) -> bool:
    """Return True for ``python scripts/x.py ...`` of the selected skill, as the shell in *cwd* would resolve it."""
    if skill is None or "=" in words[0]:
        return False
    by_name = words[0] in ("python", "python3", "bash", "sh") and len(words) > 1
    named = words[1] if by_name else words[0]
    if named.startswith("-") or (not by_name and "/" not in named):  # the shell searches PATH for a bare name
        return False
    place = (cwd / named).resolve()
    return place.is_file() and place.is_relative_to((skill.folder / "scripts").resolve())
