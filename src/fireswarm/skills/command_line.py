"""Parse a shell line as bash does, for callers that must check it before it runs.

All checks share this parser: a second parser could differ, and a command that it overlooks would run. It supports
words, quotes, pipes and separators. It rejects everything else (substitution, redirection to a file, subshells,
comments, unclosed quotes), since a check must not rely on a guess.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_HARMLESS = re.compile(r"(?:[012&]?>>?[ \t]*/dev/null|<[ \t]*/dev/null|[012]?>&[12])(?=[ \t\n;|&]|$)")
"""Redirections that affect no file."""

_SEPARATOR = re.compile(r"&&|\|\||\|&|[;|&\n]")
_VARIABLE = re.compile(r"\$[A-Za-z0-9_@*#?!$-]")
_GLOBS = frozenset("*?[")


class Unreadable(Exception):
    """The line is not a list of simple commands; the message names the unsupported part."""


class Word(NamedTuple):
    """One word without its quotes.

    ``expands`` is the part that the shell replaces (empty: none), so that the word may become any other. ``globbed`` is
    true if it begins with a pattern, which may match a file called ``-delete``.
    """

    text: str
    expands: str = ""
    globbed: bool = False


class CommandLine(NamedTuple):
    """The simple commands of a line, none of them empty, the separators, and where each word begins and ends."""

    commands: list[list[Word]]
    separators: list[str]
    places: list[list[tuple[int, int]]]


def read_command_line(line: str) -> CommandLine:
    """Parse *line*. Raises Unreadable if it contains more than simple commands."""
    commands: list[list[Word]] = [[]]
    separators: list[str] = []
    places: list[list[tuple[int, int]]] = [[]]
    place = 0
    while place < len(line):
        if line[place] in " \t":
            place += 1
        elif harmless := _HARMLESS.match(line, place):
            place = harmless.end()
        elif separator := _SEPARATOR.match(line, place):
            commands.append([])
            places.append([])
            separators.append(separator[0])
            place = separator.end()
        else:
            start = place
            word, place = _word(line, start)
            commands[-1].append(word)
            places[-1].append((start, place))
    return CommandLine([words for words in commands if words], separators, [each for each in places if each])


def _word(line: str, place: int) -> tuple[Word, int]:
    """Return the word that begins at *place*, and its end."""
    if line[place] == "#":
        raise Unreadable("a comment")
    text, expands, globbed, start = "", "", False, place
    while place < len(line) and line[place] not in " \t\n;|&" and not (place > start and line[place] in "<>"):
        letter = line[place]
        if letter == "'":
            piece, place = _single_quoted(line, place)
        elif letter == '"':
            piece, inner, place = _double_quoted(line, place)
            expands = expands or inner
        elif letter == "\\":
            piece, place = _read_escape(line, place)
        else:
            expands = expands or _check_unquoted(line, place)
            globbed = globbed or (letter in _GLOBS and not text)
            piece, place = letter, place + 1
        text += piece
    return Word(text, expands, globbed), place


def _single_quoted(line: str, place: int) -> tuple[str, int]:
    end = line.find("'", place + 1)
    if end < 0:
        raise Unreadable("an unclosed quote")
    return line[place + 1 : end], end + 1


def _double_quoted(line: str, place: int) -> tuple[str, str, int]:
    """Return the text of a double-quoted part, the part that the shell expands, and the end."""
    text, expands = "", ""
    place += 1
    while place < len(line) and line[place] != '"':
        if line[place] == "\\":
            escaped, place = _read_escape(line, place)
            text += escaped if escaped in '"\\$`' else "\\" + escaped
            continue
        expands = expands or _check_substitution(line, place)
        text, place = text + line[place], place + 1
    if place >= len(line):
        raise Unreadable("an unclosed quote")
    return text, expands, place + 1


def _read_escape(line: str, place: int) -> tuple[str, int]:
    if place + 1 >= len(line) or line[place + 1] == "\n":
        raise Unreadable("a backslash at the end of a line")
    return line[place + 1], place + 2


def _check_unquoted(line: str, place: int) -> str:
    """Reject unsupported syntax outside of quotes; return the part that the shell expands, or ""."""
    letter = line[place]
    if letter in "<>":
        raise Unreadable("a redirection")
    if letter in "()":
        raise Unreadable("brackets that the shell interprets")
    if not letter.isprintable():
        raise Unreadable("a control character")
    if letter == "$" and line[place + 1 : place + 2] in {"'", '"'}:
        raise Unreadable("a quote after $")
    return "braces" if letter in "{}" else _check_substitution(line, place)


def _check_substitution(line: str, place: int) -> str:
    if line[place] == "`" or (line[place] == "$" and line[place + 1 : place + 2] in {"(", "{", "["}):
        raise Unreadable("a substitution")
    if line[place] == "\0":
        raise Unreadable("a control character")
    return "a variable" if _VARIABLE.match(line, place) else ""
