"""``allowed-tools`` enforced: whether a skill's list lets it use a tool with this argument.

What a rule can say::

    Bash                     every command
    Bash(git status)         exactly this command
    Bash(git:*)              every command whose first word is git; Bash(git diff:*) whose first two are
    Read, Write, Edit, ...   the tool, whatever its argument
    Read(docs/**)            the tool, for paths that fit the pattern
    WebFetch(domain:x.org)   the tool, for addresses of this host and of those below it
    mcp__github              every tool of that server; mcp__github__search_code one of them

A shell line may hold several commands, and each must be allowed. What cannot be told apart with certainty
(substitution, redirection to a file, sub-shells, assignments, comments, unclosed quotes) is refused: only plain
``Bash`` allows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from fireswarm.skills.command_line import Unreadable, read_command_line

SHELLS = frozenset({"bash", "shell", "sh", "run_command", "pwsh"})
"""Names under which commands are run; a rule for one of them is a rule for all."""

_RULE = re.compile(r"([^\s()]+)(?:\((.*)\))?", re.DOTALL)
_EVERYTHING = frozenset({None, "", "*", ":*"})
_KEYWORDS = frozenset(
    (
        "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "select", "function",
        "time", "coproc", "in", "!", "{", "}", "[[", "]]", "eval", "exec",
    )
)  # fmt: skip
"""Words that make the shell read on in another way, or run what follows them as a command of its own."""


def denial_reason(allowed_tools: Iterable[str], tool: str, argument: str = "") -> str | None:
    """Say why *tool* may not be used with *argument* (a command, a path or an address); None when it may.

    An empty list allows everything.
    """
    rules = [rule.strip() for rule in allowed_tools if rule.strip()]
    if not rules or "*" in rules:
        return None
    patterns = [pattern for name, pattern in map(_parts, rules) if _same_tool(name, tool)]
    listed = " ".join(rules)
    if not patterns:
        return f"{tool} is not one of the skill's allowed tools ({listed})"
    if any(pattern in _EVERYTHING for pattern in patterns):
        return None
    limits = [pattern for pattern in patterns if pattern is not None]
    if tool.lower() in SHELLS:
        return _commands(limits, argument, listed)
    if any(_fits(pattern, argument) for pattern in limits):
        return None
    return f"{tool} is not allowed with {argument[:200]!r}; the skill allows {listed}"


def _parts(rule: str) -> tuple[str, str | None]:
    """Name and pattern of a rule; a rule that cannot be read fits no tool."""
    found = _RULE.fullmatch(rule)
    return (found[1], found[2]) if found is not None else ("", None)


def _same_tool(rule: str, tool: str) -> bool:
    rule, tool = rule.lower(), tool.lower()
    if rule in SHELLS and tool in SHELLS:
        return True
    if rule.startswith("mcp__"):
        if rule.endswith("*"):
            return tool.startswith(rule.rstrip("*"))
        return tool == rule or (rule.count("__") == 1 and tool.startswith(f"{rule}__"))
    return bool(rule) and rule == tool


# ── commands ────────────────────────────────────────────────────────────────────────────────────────────


def _commands(patterns: Sequence[str], line: str, listed: str) -> str | None:
    try:
        commands = _simple_commands(line)
    except Unreadable as doubt:
        return f"the command contains {doubt}, so it cannot be checked against the skill's allowed tools ({listed})"
    if not commands:
        return "the command is empty"
    for command in commands:
        if not any(_matches(pattern, command) for pattern in patterns):
            return f"the command {' '.join(command)[:200]!r} is not one of the skill's allowed tools ({listed})"
    return None


def _matches(pattern: str, command: Sequence[str]) -> bool:
    """Words of a rule against words of a command: all of them, or with ``:*`` (or a last `` *``) the first ones."""
    open_ended = pattern.endswith((":*", " *"))
    wanted = (pattern[:-2] if open_ended else pattern).split()
    if not wanted or command[0] in _KEYWORDS:
        return False
    return list(command[: len(wanted)]) == wanted if open_ended else list(command) == wanted


def _simple_commands(line: str) -> list[list[str]]:
    """The commands of a shell line as words; Unreadable also for words that make the shell read on in another way."""
    found = [[word.text for word in words] for words in read_command_line(line).commands]
    for command in found:
        if re.match(r"\w+\+?=", command[0]):
            raise Unreadable("an assignment before a command")
        if command[0] in _KEYWORDS:
            raise Unreadable(f"the shell word {command[0]}")
    return found


# ── paths and addresses ─────────────────────────────────────────────────────────────────────────────────


def _fits(pattern: str, argument: str) -> bool:
    if pattern.startswith("domain:"):
        return _host_fits(pattern.removeprefix("domain:").strip().lower(), argument)
    path = argument.replace("\\", "/")
    if not path or "\0" in path or ".." in path.split("/"):
        return False
    return re.fullmatch(_as_regex(_plain(pattern)), _plain(path)) is not None


def _plain(path: str) -> str:
    return re.sub(r"/(?:\./)*/*", "/", path.removeprefix("./"))


def _as_regex(pattern: str) -> str:
    """``*`` within a folder, ``**`` across folders, ``?`` one letter; everything else as it is."""
    parts = re.split(r"(\*\*/?|\*|\?)", pattern)
    meaning = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(meaning.get(part, re.escape(part)) for part in parts)


def _host_fits(domain: str, address: str) -> bool:
    try:
        parts = urlsplit(address)
        host = (parts.hostname or "").lower()
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(domain) and (host == domain or host.endswith(f".{domain}"))
