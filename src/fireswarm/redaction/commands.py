"""Passwords in options of well-known clients, such as ``mysql -pPASSWORD``, and in lines of ``.netrc``.

The short options have other meanings elsewhere (``mkdir -p``, ``ssh -p 22``), so each one counts only after its own
program.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

_GAP = r"""(?:[ \t]{0,8}["'],[ \t]*|[ \t]*)"""
"""Text between an option and its value; the first form is for a list of arguments."""
_APART = r"""(?:=|[ \t]{0,8}["'],[ \t]*|[ \t]+)"""
_QUOTED = r""""(?!-){0}(?P<double>[^"\n]{{1,200}})"|'(?!-){1}(?P<single>[^'\n]{{1,200}})'"""
_BARE = r"""[^\s"'`|;&<>(){}\[\],\\-][^\s"'`|;&<>(){}]{0,200}"""
_VALUE = rf"(?:{_QUOTED.format('', '')}|(?P<bare>{_BARE}))"
_USER = rf"""(?:{_QUOTED.format('[^":]{1,100}:', "[^':]{1,100}:")}|[^\s"':]{{1,100}}:(?P<bare>{_BARE}))"""
_PASSWORD = rf"(?:-p{_GAP}|--password{_APART}){_VALUE}"

MYSQL = "mysql"
LOGIN = "login"
_OPTIONS = {
    MYSQL: rf"(?:-p(?P<gap>{_GAP})|--password{_APART}){_VALUE}",
    "mongo": _PASSWORD,
    "sshpass": rf"-p{_GAP}{_VALUE}",
    "curl": rf"(?:-[uU]|--user|--proxy-user)(?:=|{_GAP}){_USER}",
    "wget": rf"--(?:http-|ftp-|proxy-)?password{_APART}{_VALUE}",
    "redis-cli": rf"(?:-a|--pass){_APART}{_VALUE}",
    "ldap": rf"-w{_GAP}{_VALUE}",
    "sqlcmd": rf"-P{_GAP}{_VALUE}",
    "openssl": rf"-pass(?:in|out)?{_APART}pass:{_VALUE}",
    LOGIN: rf"(?:-p|--password|--token){_APART}{_VALUE}",
}
_PROGRAMS = {
    MYSQL: "mysql mysqldump mysqladmin mysqlimport mysqlsh mariadb mariadb-dump mycli",
    "mongo": "mongo mongosh mongodump mongorestore mongoimport mongoexport",
    "sshpass": "sshpass",
    "curl": "curl",
    "wget": "wget",
    "redis-cli": "redis-cli valkey-cli",
    "ldap": "ldapsearch ldapmodify ldapadd ldapdelete ldapwhoami",
    "sqlcmd": "sqlcmd",
    "openssl": "openssl",
    LOGIN: "docker podman nerdctl buildah skopeo",
}
"""Programs whose options have the same meaning."""

_BEFORE_OPTION = r"(?:(?<=[ \t\n])|(?<=[ \t\n,][\"']))"
_KIND = {name: kind for kind, names in _PROGRAMS.items() for name in names.split()}
_HINTS = (
    "mysql", "mariadb", "mycli", "mongo", "sshpass", "curl", "wget", "redis-cli", "valkey-cli", "ldap", "sqlcmd",
    "openssl", "docker", "podman", "nerdctl", "buildah", "skopeo",
)  # fmt: skip
_PROGRAM = re.compile(rf"(?<![\w.-])(?:{'|'.join(sorted(_KIND, key=len, reverse=True))})(?=[ \t\"'])")
_COMMAND_END = re.compile(r"\n|[|;]|&&")
_OPEN_END = re.compile(r"(?<!\\)\n|[|;]|&&")
_LOGIN = re.compile(r"[ \t,][\"']?login[ \t\"']")
LONGEST_COMMAND = 400
"""Maximum characters of a command that are searched for options."""

WORDS_BEFORE_OPTION = 3
"""Number of words after the name of a program that a stream waits for an option."""

_NO_VALUE = re.compile(r"[$%{<@#*]|\[redacted|(?i:(?:your|my)?[_-]?pass(?:word|wd|phrase)?$|pw$|x{3,}|\.{3})")
_WORDS = frozenset({
    "and", "are", "asks", "can", "cannot", "does", "expects", "flag", "for", "from", "has", "means", "must", "option",
    "prompts", "reads", "sets", "should", "takes", "than", "that", "the", "then", "this", "use", "uses", "value", "was",
    "when", "which", "with", "without", "you",
})  # fmt: skip
"""Words that follow an option in a sentence about it."""

_MACHINE = r"(?<!\w)(?:machine\s{1,4}[^\s]{1,200}|default)\s{1,8}login\s{1,4}[^\s]{1,200}\s{1,8}"
_NETRC = re.compile(rf"{_MACHINE}(?:account\s{{1,4}}[^\s]{{1,200}}\s{{1,8}})?password\s{{1,4}}(?P<bare>[^\s]{{1,200}})")
_OPEN_NETRC = re.compile(
    r"(?<!\w)(?:machine(?:\s{1,4}[^\s]{0,200})?|default)(?:\s{1,8}(?:l|lo|log|logi|login(?:\s{1,4}[^\s]{0,200}"
    r"(?:\s{1,8}[a-z]{0,8}(?:\s{1,4}[^\s]{0,200}){0,3})?)?)?)?\Z"
)


def find_commands(text: str) -> Iterator[tuple[int, int, int]]:
    """Yield every password of a command or a line of ``.netrc``: start of the option, start and end of the value."""
    if "login" in text and "password" in text:
        for at in _places(text, ("machine", "default"), 0, len(text)):
            line = _NETRC.match(text, at)
            if line is not None and not _NO_VALUE.match(line["bare"]):
                yield line.start(), *line.span("bare")
    if " -" not in text and '"-' not in text and "'-" not in text:
        return
    for program in _programs(text, 0, len(text)):
        kind = _KIND[program[0]]
        end = _end_of_command(text, program.end())
        if kind == LOGIN and not _LOGIN.search(text, program.end(), end):
            continue
        for option in _option(kind).finditer(text, program.end(), end):
            group = option.lastgroup or "bare"
            if _is_password(kind, option, option[group]):
                start = option.start(group)
                yield option.start(), start, start + len(option[group].rstrip())


def _programs(text: str, start: int, end: int) -> Iterator[re.Match[str]]:
    """Yield the names of programs in a part of *text*, by name."""
    for at in _places(text, _HINTS, start, end):
        if program := _PROGRAM.match(text, at, end):
            yield program


@cache
def _option(kind: str) -> re.Pattern[str]:
    return re.compile(_BEFORE_OPTION + _OPTIONS[kind])


def _places(text: str, words: Iterable[str], start: int, end: int) -> Iterator[int]:
    for word in words:
        at = text.find(word, start, end)
        while at >= 0:
            yield at
            at = text.find(word, at + len(word), end)


def _end_of_command(text: str, start: int) -> int:
    limit = min(len(text), start + LONGEST_COMMAND)
    end = _COMMAND_END.search(text, start, limit)
    return limit if end is None else end.start()


def _is_password(kind: str, option: re.Match[str], value: str) -> bool:
    """Return True unless *value* is a variable, a placeholder or a word of a sentence."""
    if _NO_VALUE.match(value) or value.rstrip(".:").lower() in _WORDS:
        return False
    if kind == MYSQL and option["gap"]:  # a word after a space may be the name of the database
        return option.lastgroup != "bare" or (len(value) >= 6 and not value.isidentifier()) or _is_mixed(value)
    return len(value) >= 3


def _is_mixed(value: str) -> bool:
    return len(value) >= 6 and any(char.isdigit() for char in value) and "_" not in value


def open_command(text: str, end: int) -> int:
    """Return the start of a command whose password may continue after *end*, or *end*."""
    start = max(0, end - LONGEST_COMMAND)
    for program in sorted(_programs(text, start, end), key=lambda program: program.start()):
        if _OPEN_END.search(text, program.end(), end):
            continue
        words = text[program.end() : end].split()
        if len(words) <= WORDS_BEFORE_OPTION or any(word.startswith("-") for word in words):
            return program.start()
    lines = (_OPEN_NETRC.match(text, at, end) for at in _places(text, ("machine", "default"), start, end))
    return min((line.start() for line in lines if line is not None), default=end)
