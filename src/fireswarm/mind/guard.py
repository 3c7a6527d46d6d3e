"""Permissions of actions, checked where they are executed: constraints, profile, and allowed-tools. Pure.

``read_only`` allows only reading commands. ``demo_safe`` also allows the selected skill's own scripts.
A command that cannot be checked is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from fireswarm.contracts.skills.tool import Tool
from fireswarm.contracts.swarm.task import Constraints
from fireswarm.skills.allowed_tools import denial_reason
from fireswarm.skills.command_line import Unreadable, read_command_line
from fireswarm.skills.packs.catalog import Skill

READERS = frozenset({
    "basename", "cat", "cksum", "cmp", "column", "comm", "cut", "date", "df", "diff", "dirname", "du", "echo",
    "egrep", "expand", "false", "fgrep", "file", "fmt", "fold", "grep", "head", "hexdump", "id", "jq", "ls", "md5sum",
    "nl", "od", "paste", "printf", "pwd", "readlink", "realpath", "rev", "rg", "sha1sum", "sha256sum", "sort", "stat",
    "strings", "tac", "tail", "test", "tr", "tree", "true", "uname", "uniq", "wc", "which", "whoami",
})  # fmt: skip
"""Read-only programs, except for the options in ``WRITING`` and the cases in ``_only_reads``."""

GIT_READERS = frozenset(
    {"status", "log", "diff", "show", "ls-files", "ls-tree", "blame", "rev-parse", "shortlog", "grep", "describe"}
)
FIND_ACTIONS = ("-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls")
WRITING: dict[str, tuple[str, tuple[str, ...]]] = {
    "sort": ("oT", ("--output", "--compress-program", "--temporary-directory")),
    "tree": ("oR", ("--output",)),  # -R writes a page into every folder
    "file": ("C", ("--compile",)),
    "rg": ("", ("--pre", "--hostname-bin")),
    "diff": ("", ("--output",)),
    "printf": ("v", ()),  # sets a variable, such as PATH
    "test": ("vR", ()),  # evaluates the text in the brackets of a variable's name
}
"""Options with which these programs write or execute: short letters, also in a cluster, and long names."""

GIT_WRITING = ("--output", "--config-env", "--exec-path", "--ext-diff", "--textconv", "--open-files-in-pager")

_HIDDEN = re.compile(r"\$\(|`|\n|\r")
"""Substitutions and further lines, anywhere: some programs evaluate their arguments again."""

_OPERATORS = frozenset({"&&", "||", ";", "|"})
_GLOBS = frozenset("*?[")
MAY_BE_OPTION = "-\0"
"""Prefix of a word that the shell may expand to an option: a file can be called ``-delete``."""


def profile_of(constraints: Constraints, profile: str) -> str:
    """Return the stricter profile of the task and the runtime: permissive, demo_safe or read_only."""
    if constraints.read_only or profile == "read_only":
        return "read_only"
    return "demo_safe" if constraints.demo_safe or profile == "demo_safe" else "permissive"


def refuse_command(command: str, profile: str, skill: Skill | None, cwd: Path) -> str:
    """Return the reason why *command* may not run, or ""."""
    if skill is not None and (reason := denial_reason(skill.allowed_tools, "Bash", command)):
        return reason
    if profile == "permissive":
        return ""
    if _HIDDEN.search(command):
        return f"the task is {profile}: commands with substitutions or several lines cannot be checked"
    try:
        commands = _simple_commands(command)
    except Unreadable as doubt:
        return f"the task is {profile}: the command cannot be checked, since it contains {doubt}"
    if not commands:
        return f"the task is {profile}: the command is empty"
    for words in commands:
        if not _only_reads(words) and not (profile == "demo_safe" and _own_script(words, skill, cwd)):
            line = " ".join(words).replace(MAY_BE_OPTION, "")[:80]
            return f"the task is {profile}: `{line}` is not known to be read-only"
    return ""


def refuse_tool(tool: Tool, given: Mapping[str, object], profile: str, skill: Skill | None) -> str:
    """Return the reason why *tool* may not be called, or ""."""
    if skill is not None and (
        reason := denial_reason(skill.allowed_tools, tool.spec_name or tool.name, _argument(given))
    ):
        return reason
    if tool.writes and profile != "permissive":
        return f"the task is {profile}: {tool.name} writes and is not allowed"
    return ""


def _argument(given: Mapping[str, object]) -> str:
    return str(given.get("path") or given.get("pattern") or "")


def _simple_commands(line: str) -> list[list[str]]:
    """Split a line into simple commands. Raises Unreadable for anything that the shell would expand."""
    read = read_command_line(line)
    for separator in read.separators:
        if separator not in _OPERATORS:
            raise Unreadable(f"`{separator}`")
    for word in (word for words in read.commands for word in words):
        if word.expands:
            raise Unreadable(word.expands)
    return [[MAY_BE_OPTION * word.globbed + word.text for word in words] for words in read.commands]


def _only_reads(words: list[str]) -> bool:
    """Return True if the program and its arguments only read."""
    program, arguments = words[0], words[1:]
    match program:
        case "find":
            return not any(argument.startswith((*FIND_ACTIONS, MAY_BE_OPTION)) for argument in arguments)
        case "git":
            return _git_only_reads(arguments)
        case "date":  # any other argument may set the clock
            return all(argument == "-u" or argument.startswith("+") for argument in arguments)
        case "uniq":  # writes to its second operand
            return _operands(arguments) < 2
        case _:
            letters, names = WRITING.get(program, ("", ()))
            return program in READERS and not any(_writes(argument, letters, names) for argument in arguments)


def _operands(arguments: list[str]) -> int:
    """Return the maximum number of operands; a glob pattern may expand to any number of them."""
    if any(_GLOBS & set(argument) for argument in arguments):
        return 2
    ended = arguments.index("--") if "--" in arguments else len(arguments)
    before = [argument for argument in arguments[:ended] if not argument.startswith("-") or argument == "-"]
    return len(before) + len(arguments[ended + 1 :])


def _writes(argument: str, letters: str, names: tuple[str, ...]) -> bool:
    """Return True for one of the given options, also abbreviated, and for a word that may expand to one."""
    if argument.startswith(MAY_BE_OPTION):
        return bool(letters or names)
    if argument.startswith("--"):
        return any(name.startswith(argument.partition("=")[0]) for name in names) and argument != "--"
    return argument.startswith("-") and any(letter in argument for letter in letters)


def _git_only_reads(arguments: list[str]) -> bool:
    if not arguments or (arguments[0] not in GIT_READERS and arguments != ["branch"]):
        return False
    letters = "O" if arguments[0] == "grep" else ""  # opens the matching files in a program
    return not any(_writes(argument, letters, GIT_WRITING) for argument in arguments)


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
