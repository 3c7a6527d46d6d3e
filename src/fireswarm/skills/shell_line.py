"""Read any shell line for rules that deny or ask: its simple commands, and what the shell computes in them.

``command_line`` reads lines for rules that allow, and rejects all but plain words. This reader accepts every line, and
marks what only the shell knows. A text that it cannot follow makes the whole line ``computed``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

ANY, GLOB, SPLIT = "\ue000", "\ue001", "\ue002"
"""In a word: any text, any text without a slash, and any text that may also become several words."""

_MAX_DEPTH = 12
_OPERATOR = re.compile(r"&>>?|&&|\|\||\|&|;;?&?|[;|&\n()]")
_REDIRECTION = re.compile(r"\d*(?:<<<|<<-?|<>|>>|>\||[<>]&?)|&>>?")
_HEREDOC = re.compile(r"\d*<<-?(?!<)")
_EXTENDED_GLOB = re.compile(r"[@!+*?]\(")
_SET = re.compile(r"[!^]?\]?[^\]\s'\"$`\\;|&()<>]*\]")
_ARITHMETIC = re.compile(r"\([^();`\n]*\)\)")
_ANSI_QUOTED = re.compile(r"(?:[^'\\]|\\.)*'", re.DOTALL)
_BACKTICKS = re.compile(r"(?:[^`\\]|\\.)*`", re.DOTALL)
_CASE = re.compile(r"\bcase\b")
_NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*#?!$-]")


@dataclass(slots=True)
class ShellLine:
    """The simple commands of a line, also those in substitutions. ``computed`` is True if it may run others as well."""

    commands: list[list[str]] = field(default_factory=list[list[str]])
    computed: bool = False


def is_literal(word: str) -> bool:
    """Return True if the shell computes no part of *word*."""
    return not {ANY, GLOB, SPLIT} & set(word)


def read_shell_line(line: str, depth: int = 0) -> ShellLine:
    """Return the simple commands of *line*."""
    reader = _Reader(line, ShellLine(), depth)
    shifts = "<<" in line and ("((" in line or "[[" in line)  # `((1<<E))` begins no here-document
    cases = _CASE.search(line) and "(" in line  # the bracket of `case x in a)` ends no substitution
    if depth > _MAX_DEPTH or shifts or cases:
        reader.found.computed = True
    else:
        reader.read_commands("")
    return reader.found


@dataclass(slots=True)
class _Reader:
    line: str
    found: ShellLine
    depth: int
    place: int = 0
    bodies: list[tuple[str, bool, bool]] = field(default_factory=list[tuple[str, bool, bool]])

    def read_commands(self, end: str) -> None:
        """Read commands up to *end*, a closing bracket or nothing."""
        words: list[str] = []
        self.found.commands.append(words)
        while self.place < len(self.line):
            letter = self.line[self.place]
            if self.line.startswith("\\\n", self.place):
                self.place += 2
            elif letter in " \t":
                self.place += 1
            elif letter == "#":
                self.place = self._find("\n")
            elif letter == end:
                self.place += 1
                return
            elif self.line[self.place : self.place + 2] not in ("<(", ">(") and self._read_redirection():
                continue
            elif operator := _OPERATOR.match(self.line, self.place):
                self.place = operator.end()
                if letter == "\n":
                    self._skip_bodies()
                words = []
                self.found.commands.append(words)
                if letter == "(" and end:
                    self._descend(")")
            else:
                words.append(self._read_word())
        self.found.computed = self.found.computed or bool(end)

    def _descend(self, end: str) -> None:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            self.found.computed = True
            self.place = len(self.line)
            return
        self.read_commands(end)
        self.depth -= 1
        self.found.commands.append([])

    def _read_redirection(self) -> bool:
        """Skip a redirection with its target; return False if there is none."""
        redirection = _REDIRECTION.match(self.line, self.place)
        if redirection is None:
            return False
        is_body = _HEREDOC.fullmatch(redirection[0]) is not None
        self.place = redirection.end()
        while self.line[self.place : self.place + 1] in ("\t", " "):
            self.place += 1
        start = self.place
        if start < len(self.line) and not _OPERATOR.match(self.line, start):
            word = self._read_word()
            if is_body:
                given = self.line[start : self.place]
                self.bodies.append((word, bool(set("'\"\\") & set(given)), redirection[0].endswith("-")))
                self.found.computed = self.found.computed or self.depth > 0 or not is_literal(word)
        return True

    def _skip_bodies(self) -> None:
        """Skip the texts of here-documents; the shell runs the substitutions in them."""
        for end, quoted, tabs in self.bodies:
            lines = self.line[self.place :].split("\n")
            count = next(
                (n for n, text in enumerate(lines) if (text.lstrip("\t") if tabs else text) == end), len(lines)
            )
            body = "\n".join(lines[:count])
            if not quoted and ("$(" in body or "`" in body or "${" in body or "\\\n" in body):
                self.found.computed = True
            self.place = min(len(self.line), self.place + sum(len(text) + 1 for text in lines[: count + 1]))
        self.bodies = []

    def _read_word(self) -> str:
        """Return the word at the place. Quotes are taken away."""
        text, plain = "", ""
        if self.line[self.place] == "~":
            text, self.place = ANY, self.place + 1
        while self.place < len(self.line) and (letter := self.line[self.place]) not in " \t\n;|&()":
            if letter in "<>":
                if self.line[self.place + 1 : self.place + 2] == "(":
                    self.place += 2
                    self._descend(")")
                    text += ANY
                    continue
                break
            piece = self._read_piece(letter, quoted=False)
            text += piece
            plain += letter if letter in "{,.}" and len(piece) == 1 else ""
        if _EXTENDED_GLOB.match(self.line, self.place - 1) and self.place:
            self.found.computed = True
        braces = plain.partition("{")[2]
        return SPLIT if "," in braces or ".." in braces else text

    def _read_piece(self, letter: str, quoted: bool) -> str:
        """Read one piece of a word: a letter, a quoted text or an expansion."""
        if letter == "\\":
            return self._read_escape(quoted)
        if letter == "$":
            return self._read_expansion(quoted)
        if letter == "`":
            return self._read_backticks(quoted)
        if not quoted and letter == "'":
            start, self.place = self.place + 1, self._find("'", self.place + 1) + 1
            return self.line[start : self.place - 1]
        if not quoted and letter == '"':
            return self._read_double_quoted()
        self.place += 1
        if not quoted and letter == "[":
            return GLOB + ("" if self._skip_set() else letter)
        return GLOB if not quoted and letter in "*?" else letter

    def _skip_set(self) -> bool:
        """Skip the rest of ``[...]``, a set of letters in a pattern."""
        closing = _SET.match(self.line, self.place)
        self.place = closing.end() if closing else self.place
        return closing is not None

    def _read_escape(self, quoted: bool) -> str:
        following = self.line[self.place + 1 : self.place + 2]
        self.place += 2
        if following == "\n":
            return ""
        return f"\\{following}" if quoted and following not in ('"', "\\", "$", "`") else following

    def _read_double_quoted(self) -> str:
        text = ""
        self.place += 1
        while self.place < len(self.line) and self.line[self.place] != '"':
            text += self._read_piece(self.line[self.place], quoted=True)
        self.found.computed = self.found.computed or self.place >= len(self.line)
        self.place += 1
        return text

    def _read_expansion(self, quoted: bool) -> str:
        """Read what begins with ``$``; commands in it are added to the line."""
        following = self.line[self.place + 1 : self.place + 2]
        value = ANY if quoted else SPLIT
        if following == "(":
            self.place += 2
            if arithmetic := _ARITHMETIC.match(self.line, self.place):
                self.place = arithmetic.end()
            else:
                self._descend(")")
            return value
        if following == "{":
            start, self.place = self.place, self._find("}") + 1
            given = self.line[start : self.place]
            if re.search(r"['\"\\`(]", given) or given.count("{") > 1:
                self.found.computed = True
            return value
        if not quoted and following == "'":
            ending = _ANSI_QUOTED.match(self.line, self.place + 2)
            self.place = ending.end() if ending else len(self.line)
            self.found.computed = self.found.computed or ending is None
            return ANY
        if not quoted and following == '"':
            self.place += 1
            self._read_double_quoted()
            return ANY
        name = _NAME.match(self.line, self.place + 1)
        self.place = name.end() if name else self.place + 1
        return value if name or following == "[" else "$"

    def _read_backticks(self, quoted: bool) -> str:
        ending = _BACKTICKS.match(self.line, self.place + 1)
        inner = self.line[self.place + 1 : ending.end() - 1] if ending else ""
        self.place = ending.end() if ending else len(self.line)
        read = read_shell_line(re.sub(r"\\([\\`$])", r"\1", inner), self.depth + 1)
        self.found.commands += read.commands
        self.found.computed = self.found.computed or read.computed or ending is None
        return ANY if quoted else SPLIT

    def _find(self, letter: str, start: int | None = None) -> int:
        """Return where *letter* comes next, or the end. A missing quote or bracket makes the line computed."""
        found = self.line.find(letter, self.place if start is None else start)
        if found < 0:
            self.found.computed = self.found.computed or letter != "\n"
            return len(self.line)
        return found
