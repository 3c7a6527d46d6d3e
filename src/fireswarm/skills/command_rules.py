"""Match a shell line with rules that deny or ask: whether a rule names one of its commands, or could name one."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from fireswarm.skills.inner_commands import base_name, inner_commands, is_assignment
from fireswarm.skills.shell_line import ANY, GLOB, SPLIT, is_literal, read_shell_line

_CONTINUED = re.compile(r"\\\n")
_MAX_COMMANDS = 500
"""Commands of one line that are looked at; a longer line could match every rule."""


class CommandsOf:
    """The commands of a shell line: those that it is written with, and those that wrappers, shells and git run for it.

    A rule is met if its words are those of a command, by the base name of the program and with options between the
    words, or appear anywhere in the line. It could be met where the shell, or another program, computes a word.
    """

    def __init__(self, line: str) -> None:
        self._line = line
        read = read_shell_line(line)
        self.computed = read.computed
        self.commands: list[list[str]] = []
        pending = read.commands
        while pending and len(self.commands) < _MAX_COMMANDS:
            words = pending.pop()
            self.commands.append(words)
            inner = inner_commands(words)
            pending.extend(inner.commands)
            self.computed = self.computed or inner.computed
        self.computed = self.computed or bool(pending)
        shown = _as_shown(line)
        self._shown = CommandsOf(shown) if shown != line else None

    def has(self, pattern: str) -> bool:
        """Return True if a command of the line is one of *pattern*."""
        wanted = _words_of(pattern)
        return _appears(wanted, self._line) or any(
            _may_be(wanted, words) for words in self.commands if all(map(is_literal, words))
        )

    def may_have(self, pattern: str) -> bool:
        """Return True if a command of the line could be one of *pattern*."""
        wanted = _words_of(pattern)
        named = [base_name(wanted[0]), *wanted[1:]] if wanted else []
        looks_like = self._shown is not None and (self._shown.has(pattern) or self._shown.may_have(pattern))
        return self.computed or looks_like or any(_may_be(named, words) for words in self.commands)


def _as_shown(line: str) -> str:
    """Return a line as it looks: without characters that a screen does not show, and with usual letters."""
    usual = unicodedata.normalize("NFKC", line)
    shown = "".join(letter for letter in usual if letter in "\n\t" or unicodedata.category(letter)[0] != "C")
    return unicodedata.normalize("NFKC", shown)


def _may_be(wanted: Sequence[str], words: Sequence[str]) -> bool:
    """Return True if the words of a command could be the wanted ones."""
    if not wanted or not words or is_assignment(words[0]):
        return False
    return _could_be(words[0], wanted[0]) and _follow(wanted[1:], words[1:])


def _could_be(word: str, wanted: str) -> bool:
    """Return True if *word*, or the name of the program at the end of its path, could be *wanted*."""
    if SPLIT in word:
        return True
    tail = word.rpartition(ANY)[2]
    if ANY not in word or "/" in tail:
        return _fits(tail, wanted) or _fits(base_name(tail), wanted)
    return any(_fits(tail, wanted[place:]) for place in range(len(wanted) + 1))


def _fits(pattern: str, text: str) -> bool:
    """Match a word with ``GLOB`` in it against a text."""
    first, *others = pattern.split(GLOB)
    if not others:
        return pattern == text
    *middle, last = others
    if not (text.startswith(first) and text.endswith(last) and len(first) + len(last) <= len(text)):
        return False
    place, end = len(first), len(text) - len(last)
    for piece in middle:
        place = text.find(piece, place, end) + len(piece)
        if place < len(piece):
            return False
    return True


def _words_of(pattern: str) -> list[str]:
    return pattern.removesuffix(":*").removesuffix(" *").split()


def _appears(wanted: Sequence[str], line: str) -> bool:
    """Return True if the words of a rule appear in sequence in a shell line, compared by the programs' base names."""
    words = re.split(r"[\s;&|()<>{}`]+", re.sub(r"[\\\"']", "", _CONTINUED.sub("", line)))
    return any(
        wanted and wanted[0] in (word, base_name(word)) and _follow(wanted[1:], words[place + 1 :])
        for place, word in enumerate(words)
    )


def _follow(wanted: Sequence[str], words: Sequence[str]) -> bool:
    """Return True if *words* could begin with the wanted ones, apart from options and their values.

    ``git -C . push`` is ``git push``.
    """
    after_option = False
    for word in words:
        if not wanted:
            return True
        if SPLIT in word or _could_be(word, wanted[0]):
            if SPLIT in word:
                return True
            wanted, after_option = wanted[1:], False
        elif word.startswith(("-", ANY, GLOB)):
            after_option = True
        elif after_option:
            after_option = False
        else:
            return False
    return not wanted
