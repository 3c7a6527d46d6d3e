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
from fireswarm.contracts.skills.permissions import PATH_TOOLS
from fireswarm.errors import ConfigError
from fireswarm.skills.command_line import Unreadable, Word, read_command_line
from fireswarm.skills.command_rules import CommandsOf
from fireswarm.skills.inner_commands import KEYWORDS, inner_commands, is_assignment, runs_programs_of_its_own
from fireswarm.skills.shell_line import SPLIT, is_literal

SHELLS = frozenset({"bash", "shell", "sh", "run_command", "pwsh"})
"""Names of tools that run commands; a rule for one of them applies to all."""

_RULE = re.compile(r"([^\s()]+)(?:\((.*)\))?", re.DOTALL)
_EVERYTHING = frozenset({None, "", "*", ":*"})


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
    rules: Iterable[str],
    tool: str,
    arguments: Sequence[str],
    cwd: Path,
    aliases: Sequence[str] = (),
    base: Path | None = None,
) -> tuple[str, bool]:
    """Return the first rule that matches the action, or "", and False if the match is only possible.

    A rule for commands matches as ``CommandsOf`` says. A rule for paths matches any spelling of a path, relative to
    *cwd*, or to *base*, the folder of the objective, if the work in *cwd* is a part of one.
    """
    doubtful, base = "", base if base is not None and cwd.is_relative_to(base) else cwd
    as_given = base == cwd or not {tool.casefold(), *map(str.casefold, aliases)} & PATH_TOOLS
    lines = [CommandsOf(line) for line in arguments] if tool.lower() in SHELLS else []
    for rule in rules:
        name, pattern = _parts(rule)
        if not (name == "*" or _names(name, tool, aliases)):
            continue
        if pattern in _EVERYTHING:
            return rule, True
        assert pattern is not None
        if tool.lower() not in SHELLS:
            wanted = [each for path in as_paths(pattern) for each in (path, f"{path}/**")]
            given = (each for argument in arguments for each in _spellings(argument, cwd, base, as_given=as_given))
            if any(_fits(each, spelling) for spelling in given for each in wanted):
                return rule, True
        elif any(line.has(pattern) for line in lines):
            return rule, True
        elif any(line.may_have(pattern) for line in lines):
            doubtful = doubtful or rule
    return doubtful, False


def path_patterns(rules: Iterable[str], tool: str, aliases: Sequence[str] = ()) -> list[str]:
    """Return the patterns for paths in the rules for a tool, as `as_paths` reads them."""
    named = [pattern for name, pattern in map(_parts, rules) if _names(name, tool, aliases)]
    return [path for each in named if each is not None and each not in _EVERYTHING for path in as_paths(each)]


def as_paths(pattern: str) -> tuple[str, ...]:
    """Return the patterns that a person means by the path of an ``ask`` or ``deny`` rule.

    Spaces around it do not count, ``~`` is the home, a slash at the end means all that is in a folder, and one at the
    beginning the root of the workspace as well as that of the machine.
    """
    if pattern.startswith("domain:"):
        return (pattern,)
    path = _plain(os.path.expanduser(pattern.strip()))  # noqa: PTH111 - a pattern is no path yet
    path = "**" if path in ("", ".") else f"{path}**" if path.endswith("/") else path
    while path.endswith("/**/**"):
        path = path.removesuffix("/**")
    return (path, path.lstrip("/")) if path.startswith("/") and path.strip("/*") else (path,)


def fits_path(pattern: str, path: str) -> bool:
    """Return True if a path as it is spelled fits the pattern of a rule."""
    return _fits(pattern, path)


def _spellings(argument: str, cwd: Path, base: Path, *, as_given: bool) -> Iterator[str]:
    """Yield an argument, a path from *cwd*: absolute, relative to *base*, and *as_given*; links are followed."""
    if as_given:
        yield argument
    if "\0" in argument:
        return
    path = _absolute(argument, cwd)
    for place in (path, Path(os.path.realpath(path))):
        yield from _names_of(place, base)


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
        if not _is_covered(patterns, command):
            line = truncate(" ".join(word.text for word in command), MAX_LABEL_CHARS)
            return f"the command {line!r} is not one of the skill's allowed tools ({listed})"
    return None


def _is_covered(patterns: Sequence[str], command: Sequence[Word]) -> bool:
    """Return True if a rule matches the words of a command, and those of each command that it runs (``env rm``)."""
    plain = [word.text for word in command]
    marked = [SPLIT if word.expands or word.globbed else word.text for word in command]
    matching = [pattern for pattern in patterns if _matches(pattern, plain)]
    if not matching:
        return False
    reached = max(len(plain) if not _is_open(pattern) else len(pattern[:-2].split()) for pattern in matching)
    inner = inner_commands(marked)
    if inner.computed and not runs_programs_of_its_own(marked):
        return False
    for words in filter(None, inner.commands):
        if words[-1] == SPLIT != marked[-1]:  # what ``xargs`` appends
            words.pop()
        is_reached = words == marked[-len(words) :] and len(marked) - len(words) < reached
        if not is_reached and not _is_covered(patterns, [*map(_as_word, words)]):
            return False
    return True


def _as_word(text: str) -> Word:
    return Word(text, expands="" if is_literal(text) else text)


def _is_open(pattern: str) -> bool:
    return pattern.endswith((":*", " *"))


def _matches(pattern: str, command: Sequence[str]) -> bool:
    """Match the words of a rule against a command: all of them, or with ``:*`` (or a final `` *``) the first ones."""
    wanted = (pattern[:-2] if _is_open(pattern) else pattern).split()
    if not wanted or command[0] in KEYWORDS:
        return False
    return list(command[: len(wanted)]) == wanted if _is_open(pattern) else list(command) == wanted


def _simple_commands(line: str) -> list[list[Word]]:
    """Split a shell line into commands. Raises Unreadable also for words that change how the shell parses the line."""
    commands = read_command_line(line).commands
    for command in commands:
        if is_assignment(command[0].text):
            raise Unreadable("an assignment before a command")
        if command[0].text in KEYWORDS:
            raise Unreadable(f"the shell word {command[0].text}")
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
