"""What a task may do, enforced where it is done: constraints, the runtime profile, and a skill's allowed-tools. Pure.

``read_only`` lets commands only look. ``demo_safe`` lets them also run the selected skill's own scripts.
A command that cannot be judged is refused: better one command less than one too many.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path, PurePath

from fireswarm.contracts.task import Constraints
from fireswarm.mind.assignment import Tool
from fireswarm.skills.catalog import Skill
from fireswarm.skills.tools import permits

READERS = frozenset({
    "basename", "cat", "cksum", "cmp", "column", "comm", "cut", "date", "df", "diff", "dirname", "du", "echo",
    "egrep", "expand", "false", "fgrep", "file", "fmt", "fold", "grep", "head", "hexdump", "id", "jq", "ls", "md5sum",
    "nl", "od", "paste", "printf", "pwd", "readlink", "realpath", "rev", "rg", "sha1sum", "sha256sum", "sort", "stat",
    "strings", "tac", "tail", "test", "tr", "tree", "true", "uname", "uniq", "wc", "which", "whoami",
})  # fmt: skip
"""Programs that change nothing, but for the options in ``WRITING`` and what ``_only_reads`` knows of."""

GIT_READERS = frozenset(
    {"status", "log", "diff", "show", "ls-files", "ls-tree", "blame", "rev-parse", "shortlog", "grep", "describe"}
)
FIND_ACTIONS = ("-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls")
WRITING: dict[str, tuple[str, tuple[str, ...]]] = {
    "sort": ("oT", ("--output", "--compress-program", "--temporary-directory")),
    "tree": ("o", ("--output",)),
    "file": ("C", ("--compile",)),
    "rg": ("", ("--pre", "--hostname-bin")),
    "diff": ("", ("--output",)),
}
"""Options by which a reader writes or runs something: short letters, also in a cluster, and long names."""

GIT_WRITING = (
    "--output",
    "-c",
    "--config-env",
    "--exec-path",
    "--ext-diff",
    "--textconv",
    "-O",
    "--open-files-in-pager",
)

_OPERATORS = frozenset({"|", "||", "&&", ";"})
_HIDDEN = re.compile(r"\$\(|`|<\(|>\(|\$\{[^}]*[@!]|\n|\r")


def profile_of(constraints: Constraints, profile: str) -> str:
    """The stricter of what the task and the runtime say: permissive, demo_safe or read_only."""
    if constraints.read_only or profile == "read_only":
        return "read_only"
    return "demo_safe" if constraints.demo_safe or profile == "demo_safe" else "permissive"


def refuse_command(command: str, profile: str, skill: Skill | None, cwd: Path) -> str:
    """Why *command* may not run; empty when it may."""
    if skill is not None and (reason := permits(skill.allowed_tools, "Bash", command)):
        return reason
    if profile == "permissive":
        return ""
    if _HIDDEN.search(command):
        return f"the task is {profile}: commands with substitutions or several lines cannot be judged"
    try:
        commands = list(_simple_commands(command))
    except ValueError as error:
        return f"the task is {profile}, and the command cannot be judged: {error}"
    for words in commands:
        if not _only_reads(words) and not (profile == "demo_safe" and _own_script(words, skill, cwd)):
            return f"the task is {profile}: `{' '.join(words)[:80]}` is not known to change nothing"
    return ""


def refuse_tool(tool: Tool, given: Mapping[str, object], profile: str, skill: Skill | None) -> str:
    """Why *tool* may not be called; empty when it may."""
    if skill is not None and (reason := permits(skill.allowed_tools, tool.spec_name or tool.name, _argument(given))):
        return reason
    if tool.writes and profile != "permissive":
        return f"the task is {profile}, and {tool.name} writes"
    return ""


def _argument(given: Mapping[str, object]) -> str:
    return str(given.get("path") or given.get("pattern") or "")


def _simple_commands(command: str) -> list[list[str]]:
    """The simple commands of a line; ValueError for redirections to files, jobs, and broken quoting."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.commenters = ""
    commands: list[list[str]] = [[]]
    tokens = list(lexer)
    for number, token in enumerate(tokens):
        if token in _OPERATORS:
            commands.append([])
        elif set(token) <= set("<>&|;()") and token:
            if not _harmless_redirection(token, tokens[number + 1 : number + 2]):
                raise ValueError(f"`{token}`")
        elif not (number and tokens[number - 1] in (">", ">>", "<", ">&") and token in ("/dev/null", "1", "2")):
            commands[-1].append(token)
    found = [words for words in commands if words]
    if not found:
        raise ValueError("it is empty")
    return found


def _harmless_redirection(token: str, following: list[str]) -> bool:
    return (token in (">", ">>", "<") and following == ["/dev/null"]) or (token == ">&" and following in (["1"], ["2"]))


def _only_reads(words: list[str]) -> bool:
    program, arguments = words[0], words[1:]
    match program:
        case "find":
            return not any(argument.startswith(FIND_ACTIONS) for argument in arguments)
        case "git":
            return _git_only_reads(arguments)
        case "date":  # with any other argument it may set the clock
            return all(argument == "-u" or argument.startswith("+") for argument in arguments)
        case "uniq":  # its second operand is written to
            return sum(not argument.startswith("-") for argument in arguments) < 2
        case _:
            letters, names = WRITING.get(program, ("", ()))
            return program in READERS and not any(_writes(argument, letters, names) for argument in arguments)


def _writes(argument: str, letters: str, names: tuple[str, ...]) -> bool:
    if argument.startswith("--"):
        return any(name.startswith(argument.partition("=")[0]) for name in names) and argument != "--"
    return argument.startswith("-") and any(letter in argument for letter in letters)


def _git_only_reads(arguments: list[str]) -> bool:
    if any(argument.startswith(GIT_WRITING) for argument in arguments):
        return False
    return bool(arguments) and (arguments[0] in GIT_READERS or arguments == ["branch"])


def _own_script(words: list[str], skill: Skill | None, cwd: Path) -> bool:
    """``python scripts/x.py ...`` of the selected skill itself."""
    if skill is None or "=" in words[0]:
        return False
    named = words[1] if PurePath(words[0]).name in ("python", "python3", "bash", "sh") and len(words) > 1 else words[0]
    if named.startswith("-"):
        return False
    scripts = (skill.folder / "scripts").resolve()
    return any(
        place.is_file() and place.is_relative_to(scripts)
        for place in ((cwd / named).resolve(), (skill.folder / named).resolve())
    )
