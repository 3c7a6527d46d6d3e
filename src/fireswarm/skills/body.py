"""The body of a SKILL.md: its sections, and the files it names. Pure text; nothing here opens a file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

_HEADING = re.compile(r"(#{1,6})[ \t]+(.+?)[ \t]*#*$")
_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")
_LINK = re.compile(
    r"\[[^\]\n]{0,300}\]\(\s*<?([^)>\s]{1,500})>?[^)\n]{0,200}\)|^\[[^\]\n]+\]:\s*<?(\S{1,500}?)>?\s*$", re.M
)
_SPAN = re.compile(r"(?<!`)`([^`\n]{1,300})`(?!`)")
_PATH = re.compile(r"(?:[\w.@%+~$(){}<>:-]*[/\\])*[\w.@%+~-]*\w\.[A-Za-z][A-Za-z0-9]{0,7}$")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")

SCRIPT_SUFFIXES = frozenset(
    (
        ".py", ".sh", ".bash", ".zsh", ".fish", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".lua", ".r", ".jl",
        ".ps1", ".psm1", ".bat", ".cmd", ".exe", ".awk", ".tcl", ".go", ".jar",
    )
)  # fmt: skip
"""Suffixes of files that somebody would execute."""

_RUNNERS = frozenset(
    (
        "python", "python3", "bash", "sh", "zsh", "node", "deno", "bun", "npx", "tsx", "ruby", "perl", "php", "lua",
        "pwsh", "powershell", "source", ".", "exec", "java", "uv", "uvx",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with the text below it, up to the next heading of the same or a higher level."""

    title: str
    level: int
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Mention:
    """A file that the body names, as written, with its 1-based line. ``linked``: by a link, not a code span."""

    path: str
    line: int
    linked: bool


def headings(body: str) -> tuple[tuple[int, str, int], ...]:
    """(level, title, index of its line) of every heading that is not inside a code fence."""
    found: list[tuple[int, str, int]] = []
    if "#" not in body:
        return ()
    fence = ""
    for number, line in enumerate(body.split("\n")):
        mark = _FENCE.match(line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) else fence
        elif mark:
            fence = mark[1]
        elif line.startswith("#") and (heading := _HEADING.match(line)):
            found.append((len(heading[1]), heading[2].strip(), number))
    return tuple(found)


def sections(body: str) -> tuple[Section, ...]:
    """Every section of *body*; the text of one includes its sub-sections."""
    lines = body.split("\n")
    marks = headings(body)
    found: list[Section] = []
    for place, (level, title, line) in enumerate(marks):
        end = next((later for deeper, _, later in marks[place + 1 :] if deeper <= level), len(lines))
        found.append(Section(title, level, line + 1, "\n".join(lines[line:end]).strip()))
    return tuple(found)


def anchor(title: str) -> str:
    """A heading as a link names it: lowercase, blanks as hyphens, punctuation dropped."""
    return re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")


def mentions(body: str) -> tuple[Mention, ...]:
    """Local files that links and code spans name, each once, in the order of the text."""
    found: dict[str, Mention] = {}
    for place, path, linked in sorted(_named(body)):
        clean = unquote(path).split("#")[0].split("?")[0].removeprefix("./") if linked else path.removeprefix("./")
        if clean and clean not in found:
            found[clean] = Mention(clean, body.count("\n", 0, place) + 1, linked)
    return tuple(found.values())


def _named(body: str) -> Iterator[tuple[int, str, bool]]:
    if "](" in body or "]:" in body:
        for match in _LINK.finditer(body):
            target = match[1] or match[2]
            if not _SCHEME.match(target) and not target.startswith(("#", "//")):
                yield match.start(), target, True
    for match in _SPAN.finditer(body):
        for word in match[1].split():
            word = word.strip("\"'(),;")
            if _PATH.fullmatch(word) and not _SCHEME.match(word):
                yield match.start(), word, False


def commands(body: str) -> Iterator[tuple[str, int]]:
    """Script paths that lines of code fences run, with their 1-based lines.

    Only what stands where a command or its interpreter's first argument stands counts: a path in an example's data is
    not executed by anybody.
    """
    fence = ""
    for number, line in enumerate(body.split("\n"), start=1):
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif fence:
            for part in re.split(r"&&|\|\||[;|]", line):
                yield from ((path, number) for path in _run_by(part.split()))


def _run_by(words: list[str]) -> Iterator[str]:
    words = [word.strip("\"'`") for word in words if word not in {"$", ">", "sudo", "env", "time", "nohup"}]
    if not words:
        return
    if words[0] in _RUNNERS:
        words = [word for word in words[1:] if not word.startswith("-") and word != "run"]
    if words and is_script(words[0]) and ("/" in words[0] or "\\" in words[0]):
        yield words[0]


def is_script(path: str) -> bool:
    """Whether the name ends like a script's."""
    dot = path.rfind(".")
    return dot > 0 and path[dot:].lower() in SCRIPT_SUFFIXES
