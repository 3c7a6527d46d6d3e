"""Rules about tools: ``allowed-tools`` of a skill, and permission rules.

Rules::

    Bash                     every command
    Bash(git status)         exactly this command
    Bash(git:*)              every command whose first word is git; Bash(git diff:*) whose first two are
    Read, Write, Edit, ...   the tool, whatever its argument
    Read(docs/**)            the tool, for paths that match the pattern
    WebFetch(domain:x.org)   the tool, for addresses of this host and its subdomains
    mcp__github              every tool of that server; mcp__github__search_code one of them

A shell line may contain several commands, and each must be allowed. Lines that cannot be parsed reliably (substitution,
redirection to a file, subshells, assignments, comments, unclosed quotes) are rejected: only plain ``Bash`` allows them.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from fireswarm.contracts.limits import MAX_LABEL_CHARS, truncate
from fireswarm.contracts.linear_pattern import match_glob
from fireswarm.errors import ConfigError
from fireswarm.skills.command_line import Unreadable, read_command_line

SHELLS = frozenset({"bash", "shell", "sh", "run_command", "pwsh"})
"""Names of tools that run commands; a rule for one of them applies to all."""

_RULE = re.compile(r"([^\s()]+)(?:\((.*)\))?", re.DOTALL)
_EVERYTHING = frozenset({None, "", "*", ":*"})
_KEYWORDS = frozenset(
    (
        "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "select", "function",
        "time", "coproc", "in", "!", "{", "}", "[[", "]]", "eval", "exec",
    )
)  # fmt: skip
"""Words that change how the shell parses the line, or that execute the following words as a command."""


def denial_reason(
    allowed_tools: Iterable[str], tool: str, argument: str = "", aliases: Sequence[str] = ()
) -> str | None:
    """Return the reason why *tool* may not be used with *argument* (a command, path or address), or None.

    An empty list allows everything. *aliases* are further names of the tool in rules.
    """
    rules = [rule.strip() for rule in allowed_tools if rule.strip()]
    if not rules or "*" in rules:
        return None
    patterns = [pattern for name, pattern in map(_parts, rules) if _names(name, tool, aliases)]
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
    return f"{tool} is not allowed with {truncate(argument, MAX_LABEL_CHARS)!r}; the skill allows {listed}"


def allowing_rule(rules: Iterable[str], tool: str, argument: str, cwd: Path, aliases: Sequence[str] = ()) -> str:
    """Return a rule that allows *tool* with *argument*, or "". Every command of a shell line must be allowed.

    A rule for paths must also match the place to which the links in a path lead.

    A rule with exactly the text of a shell line allows it, whatever the line contains.
    """
    listed = [rule for rule in rules if _names(_parts(rule)[0], tool, aliases)]
    for rule in listed:
        pattern = _parts(rule)[1]
        if pattern in _EVERYTHING or (pattern is not None and pattern.strip() == argument.strip()):
            return rule
    subjects = (argument,) if tool.lower() in SHELLS else (argument, *_behind_links(argument, cwd))
    allowed = listed and all(denial_reason(listed, tool, each, aliases) is None for each in subjects)
    return ", ".join(listed) if allowed else ""


def naming_rule(
    rules: Iterable[str], tool: str, arguments: Sequence[str], cwd: Path, aliases: Sequence[str] = ()
) -> tuple[str, bool]:
    """Return the first rule that matches the action, or "", and False if the match is only possible.

    A rule for commands matches a line if its words appear anywhere in the line, also inside quotes or after another
    program (``xargs rm``); a line with computed words is a possible match. A rule for paths matches any spelling of a
    path.
    """
    doubtful = ""
    for rule in rules:
        name, pattern = _parts(rule)
        if not (name == "*" or _names(name, tool, aliases)):
            continue
        if pattern in _EVERYTHING:
            return rule, True
        assert pattern is not None
        if tool.lower() not in SHELLS:
            if any(_fits(pattern, spelling) for given in arguments for spelling in _spellings(given, cwd)):
                return rule, True
        elif any(_appears(pattern, line) for line in arguments):
            return rule, True
        elif any(_computes_words(line, pattern) for line in arguments):
            doubtful = doubtful or rule
    return doubtful, False


_COMPUTED = re.compile(r"""\$\(|`|\$'|\b(?:eval|base64|xxd)\b|\\x[0-9a-f]""", re.IGNORECASE)
"""Parts of a shell line that may expand to any other word."""

_EXPANDS = frozenset("$`{[?*~")
_CONTINUED = re.compile(r"\\\n")
_SEPARATORS = re.compile(r"[;&|()\n]+|(?<!\S)[{}](?!\S)")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_PREFIXES = _KEYWORDS | {
    "env", "command", "builtin", "sudo", "doas", "nice", "nohup", "setsid", "stdbuf", "timeout", "xargs", "watch",
}  # fmt: skip
"""Words before the name of a program."""

_INTERPRETERS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "fish"})


def _computes_words(line: str, pattern: str) -> bool:
    """Return True if the shell may compute a word that *pattern* is about: a program, or a word after it."""
    if _COMPUTED.search(line) or ("$" in line and re.search(r"\s-\w?c\b", line)):
        return True
    return any(_may_be(pattern, command.split()) for command in _SEPARATORS.split(_CONTINUED.sub("", line)))


def _may_be(pattern: str, words: list[str]) -> bool:
    """Return True if expansion may turn the words of one command into those of *pattern*."""
    has_option = False
    while words and (_is_prefix(words[0]) or (words[0].startswith("-") and len(words) > 1)):
        has_option = has_option or words[0].startswith("-")
        words = words[1:]
    if not words:
        return False
    heads = words if has_option else words[:1]  # the first may be the value of an option: `sudo -u root $X`
    if any(_EXPANDS & set(word) for word in heads):
        return True
    program = re.sub(r"[\\\"']", "", words[0]).rpartition("/")[2]
    if program in _INTERPRETERS and all(word.startswith("-") for word in words[1:]):
        return True  # it reads its commands from a pipe
    wanted = _words_of(pattern)
    return len(wanted) > 1 and program == wanted[0] and any(_EXPANDS & set(word) for word in words[1 : len(wanted)])


def _is_prefix(word: str) -> bool:
    return bool(_ASSIGNMENT.match(word)) or word.rpartition("/")[2] in _PREFIXES or word.isdecimal()


def _words_of(pattern: str) -> list[str]:
    return pattern.removesuffix(":*").removesuffix(" *").split()


def _appears(pattern: str, line: str) -> bool:
    """Return True if the words of a rule appear in sequence in a shell line, compared by the programs' base names.

    Options, each with a value or without, may stand between them: ``git -C . push`` is ``git push``.
    """
    wanted = _words_of(pattern)
    words = re.split(r"[\s;&|()<>{}`]+", re.sub(r"[\\\"']", "", _CONTINUED.sub("", line)))
    return any(
        wanted and wanted[0] in (word, word.rpartition("/")[2]) and _follow(wanted[1:], words[place + 1 :])
        for place, word in enumerate(words)
    )


def _follow(wanted: list[str], words: list[str]) -> bool:
    """Return True if *words* begin with the wanted ones, apart from options and their values."""
    after_option = False
    for word in words:
        if not wanted:
            return True
        if word == wanted[0]:
            wanted, after_option = wanted[1:], False
        elif word.startswith("-"):
            after_option = True
        elif after_option:
            after_option = False
        else:
            return False
    return not wanted


def _spellings(argument: str, cwd: Path) -> Iterator[str]:
    """Yield an argument as given, and its path: absolute, and relative to *cwd*; links are followed."""
    yield argument
    if "\0" in argument:
        return
    path = _absolute(argument, cwd)
    for place in (path, Path(os.path.realpath(path))):
        yield from _names_of(place, cwd)


def _behind_links(argument: str, cwd: Path) -> Iterator[str]:
    """Yield the place to which the links in a path lead, if it has any: relative to *cwd*, or absolute outside."""
    if not argument or "\0" in argument:
        return
    path = _absolute(argument, Path(os.path.realpath(cwd)))
    place = Path(os.path.realpath(path))
    if place != path:
        yield list(_names_of(place, cwd))[-1]


def _absolute(argument: str, cwd: Path) -> Path:
    text = argument
    while text.startswith("file://"):
        text = text.removeprefix("file://")
    return Path(os.path.abspath(cwd / text))  # noqa: PTH100 - Path.resolve follows links


def _names_of(place: Path, cwd: Path) -> Iterator[str]:
    yield place.as_posix()
    for folder in dict.fromkeys((cwd, Path(os.path.realpath(cwd)))):
        if place.is_relative_to(folder):
            yield place.relative_to(folder).as_posix()


def _parts(rule: str) -> tuple[str, str | None]:
    """Split a rule into name and pattern; an invalid rule matches no tool."""
    match = _RULE.fullmatch(rule)
    return (match[1], match[2]) if match is not None else ("", None)


def _names(rule: str, tool: str, aliases: Sequence[str]) -> bool:
    """Return True if the name in a rule is one of the tool's names."""
    return any(_same_tool(rule, name) for name in (tool, *aliases))


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
    """Return the reason why a shell line is not allowed, or None."""
    try:
        commands = _simple_commands(line)
    except Unreadable as doubt:
        return f"the command contains {doubt}, so it cannot be checked against the skill's allowed tools ({listed})"
    if not commands:
        return "the command is empty"
    for command in commands:
        if not any(_matches(pattern, command) for pattern in patterns):
            line = truncate(" ".join(command), MAX_LABEL_CHARS)
            return f"the command {line!r} is not one of the skill's allowed tools ({listed})"
    return None


def _matches(pattern: str, command: Sequence[str]) -> bool:
    """Match the words of a rule against a command: all of them, or with ``:*`` (or a final `` *``) the first ones."""
    open_ended = pattern.endswith((":*", " *"))
    wanted = (pattern[:-2] if open_ended else pattern).split()
    if not wanted or command[0] in _KEYWORDS:
        return False
    return list(command[: len(wanted)]) == wanted if open_ended else list(command) == wanted


def _simple_commands(line: str) -> list[list[str]]:
    """Split a shell line into commands. Raises Unreadable also for words that change how the shell parses the line."""
    commands = [[word.text for word in words] for words in read_command_line(line).commands]
    for command in commands:
        if re.match(r"\w+\+?=", command[0]):
            raise Unreadable("an assignment before a command")
        if command[0] in _KEYWORDS:
            raise Unreadable(f"the shell word {command[0]}")
    return commands


# ── paths and addresses ─────────────────────────────────────────────────────────────────────────────────


def _fits(pattern: str, argument: str) -> bool:
    if pattern.startswith("domain:"):
        return _host_fits(pattern.removeprefix("domain:").strip().lower(), argument)
    path = argument.replace("\\", "/")
    if not path or "\0" in path or ".." in path.split("/"):
        return False
    try:
        return match_glob(_plain(pattern), _plain(path))
    except ConfigError:  # a rule that is too long allows nothing
        return False


def _plain(path: str) -> str:
    return re.sub(r"/(?:\./)*/*", "/", path.removeprefix("./"))


def _host_fits(domain: str, address: str) -> bool:
    try:
        parts = urlsplit(address)
        host = unicodedata.normalize("NFKC", parts.hostname or "").replace("\u3002", ".").rstrip(".").lower()
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(domain) and (host == domain or host.endswith(f".{domain}"))
