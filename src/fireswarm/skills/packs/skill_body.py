"""The body of a SKILL.md: its sections, and the files it names. Pure text; no file is opened."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

# These patterns run over the bodies of 20,000 skills: each begins with a letter that the regex engine can search fast.
_HEADING = re.compile(r"\n(#{1,6})[ \t]+(\S.*)")
_FENCE = re.compile(r"\n {0,3}(```+|~~~+)")
_LINK = re.compile(r"\]\([ \t]*<?([^)>\s]{1,500})")
_DEFINITION = re.compile(r"\n\[[^\]\n]{1,300}\]:[ \t]*<?([^>\s]{1,500})")
_SPAN = re.compile(r"(?<!`)(`++)([^`\n]++)(`++)")
_PATH = re.compile(r"(?:[\w.@%+~$(){}<>:-]*[/\\])*[\w.@%+~-]*\w\.[A-Za-z][A-Za-z0-9]{0,7}$")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")

SCRIPT_SUFFIXES = frozenset(
    (
        ".py", ".sh", ".bash", ".zsh", ".fish", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".lua", ".r", ".jl",
        ".ps1", ".psm1", ".bat", ".cmd", ".exe", ".awk", ".tcl", ".go", ".jar",
    )
)  # fmt: skip
"""Suffixes of executable scripts."""

_SCRIPT = re.compile(rf"\.(?:{'|'.join(suffix[1:] for suffix in sorted(SCRIPT_SUFFIXES))})(?!\w)", re.I)

_RUNNERS = frozenset(
    (
        "python", "python3", "bash", "sh", "zsh", "node", "deno", "bun", "npx", "tsx", "ruby", "perl", "php", "lua",
        "pwsh", "powershell", "source", ".", "exec", "java", "uv", "uvx",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class BodySection:
    """A heading with the text below it, up to the next heading of the same or a higher level."""

    title: str
    level: int
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Mention:
    """A file named in the body, with its 1-based line. ``linked`` is True for a link, False for a code span."""

    path: str
    line: int
    linked: bool


def headings(body: str) -> tuple[tuple[int, str, int], ...]:
    """Return (level, title, line index) of every heading outside of code fences."""
    if "#" not in body:
        return ()
    fenced = fences(body)
    headings: list[tuple[int, str, int]] = []
    line = seen = 0
    for heading in _HEADING.finditer("\n" + body):
        start = heading.start()  # position in the body: the match begins one letter earlier
        line, seen = line + body.count("\n", seen, start), start
        if not _inside(fenced, start):
            headings.append((len(heading[1]), heading[2].strip().rstrip("#").rstrip() or heading[2].strip(), line))
    return tuple(headings)


@lru_cache(maxsize=8)
def fences(body: str) -> tuple[tuple[int, int], ...]:
    """Return start and end of each code fence; an unclosed fence ends at the end of the body."""
    ranges: list[tuple[int, int]] = []
    opened, mark = -1, ""
    for fence in _FENCE.finditer("\n" + body) if "```" in body or "~~~" in body else ():
        if opened < 0:
            opened, mark = fence.start(), fence[1]
        elif fence[1].startswith(mark):
            ranges.append((opened, fence.end()))
            opened = -1
    return (*ranges, (opened, len(body))) if opened >= 0 else tuple(ranges)


def _inside(places: Sequence[tuple[int, int]], place: int) -> bool:
    return any(start <= place < end for start, end in places)


def sections(body: str) -> tuple[BodySection, ...]:
    """Return every section of *body*; its text includes the subsections."""
    lines = body.split("\n")
    marks = headings(body)
    sections: list[BodySection] = []
    for place, (level, title, line) in enumerate(marks):
        end = next((later for deeper, _, later in marks[place + 1 :] if deeper <= level), len(lines))
        sections.append(BodySection(title, level, line + 1, "\n".join(lines[line:end]).strip()))
    return tuple(sections)


def anchor(title: str) -> str:
    """Return a heading's anchor: lowercase, spaces as hyphens, punctuation dropped."""
    return re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")


@lru_cache(maxsize=8)
def mentions(body: str) -> tuple[Mention, ...]:
    """Return local files named in links and code spans, each once, in order."""
    mentions: dict[str, Mention] = {}
    line, seen = 1, 0
    for place, path, linked in sorted(_named_paths(body)):
        clean = unquote(path).split("#")[0].split("?")[0].removeprefix("./") if linked else path.removeprefix("./")
        if clean and clean not in mentions:
            line, seen = line + body.count("\n", seen, place), place
            mentions[clean] = Mention(clean, line, linked)
    return tuple(mentions.values())


def _named_paths(body: str) -> Iterator[tuple[int, str, bool]]:
    """Yield position, path and whether it is a link, for each path in a link or a code span."""
    links = [*_LINK.finditer(body)] if "](" in body else []
    definitions = [*_DEFINITION.finditer("\n" + body)] if "]:" in body else []
    for match in (*links, *definitions):
        if not _SCHEME.match(match[1]) and not match[1].startswith(("#", "//")):
            yield match.start(), match[1], True
    for match in _SPAN.finditer(body):
        opened, text, closed = match.groups()
        if "." not in text or opened != "`" or closed != "`" or len(text) > 300:
            continue
        for word in text.split():
            word = word.strip("\"'(),;")
            if "." in word and _PATH.fullmatch(word) and not _SCHEME.match(word):
                yield match.start(), word, False


def commands(body: str) -> Iterator[tuple[str, int]]:
    """Yield script paths executed by lines of code fences, with their 1-based lines.

    Only the command and the first argument of an interpreter count: a path in an example's data is not executed.
    """
    fenced = fences(body)
    done = -1
    for named in _SCRIPT.finditer(body) if fenced else ():
        end = body.find("\n", named.start())
        end = len(body) if end < 0 else end
        if end == done or not _inside(fenced, named.start()):
            continue
        done = end
        line = body[body.rfind("\n", 0, named.start()) + 1 : end]
        number = body.count("\n", 0, named.start()) + 1
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


def names_scripts(body: str) -> bool:
    """Return True if any text in *body* ends like a script's name: a fast check before the slow one."""
    return _SCRIPT.search(body) is not None


def is_script(path: str) -> bool:
    """Return True if the name ends like a script's."""
    dot = path.rfind(".")
    return dot > 0 and path[dot:].lower() in SCRIPT_SUFFIXES
