"""Descriptors of a skill's scripts. Files are read, never run or imported."""

from __future__ import annotations

import ast
import os
import re
import warnings
from dataclasses import dataclass
from pathlib import Path

from fireswarm.skills.packs.discovery import files_below
from fireswarm.skills.packs.skill_body import is_script

MAX_SCRIPTS = 100
HEAD_BYTES = 4_096
"""Number of bytes read of each script; only its first words are shown."""

MAX_ABOUT_CHARS = 240

INTERPRETERS = {
    ".py": "python", ".sh": "bash", ".bash": "bash", ".zsh": "zsh", ".js": "node", ".mjs": "node", ".cjs": "node",
    ".ts": "npx tsx", ".rb": "ruby", ".pl": "perl", ".php": "php", ".lua": "lua", ".r": "Rscript", ".ps1": "pwsh",
    ".jl": "julia", ".go": "go run", ".jar": "java -jar", ".bat": "cmd /c", ".cmd": "cmd /c",
}  # fmt: skip
"""Interpreters by suffix, for scripts without a shebang line."""


@dataclass(frozen=True, slots=True)
class Script:
    """A script of a skill. ``size`` in bytes; ``about``: the first words of its docstring or head comment."""

    path: str
    size: int
    interpreter: str
    about: str


def scripts_of(folder: Path, entry: Path | None = None) -> tuple[Script, ...]:
    """Return the scripts below ``scripts/``, in the folder itself, and the entry; links to other places are omitted."""
    names = [name for name, item in files_below(f"{folder}/scripts", limit=MAX_SCRIPTS) if _executable(name, item)]
    with os.scandir(folder) as items:
        names += sorted(item.name for item in items if item.is_file(follow_symlinks=False) and is_script(item.name))
    if entry is not None:
        names.append(entry.as_posix())
    scripts: list[Script] = []
    for name in dict.fromkeys(names):
        path = folder / name
        if path.is_file() and path.resolve().is_relative_to(folder.resolve()):
            scripts.append(_describe_script(path, name))
    return tuple(scripts[:MAX_SCRIPTS])


def describe(script: Script) -> str:
    """Describe a script in one line."""
    about = f": {script.about}" if script.about else ""
    return f"- {script.path} ({script.interpreter or 'unknown interpreter'}, {script.size:,} bytes){about}"


def _executable(name: str, item: os.DirEntry[str]) -> bool:
    if not item.is_file():
        return False
    return is_script(name) or ("." not in item.name and os.access(item.path, os.X_OK))


def _describe_script(path: Path, name: str) -> Script:
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES).decode("utf-8-sig", "replace")
        size = path.stat().st_size
    except OSError:
        return Script(name, 0, "", "it cannot be read")
    return Script(name, size, _interpreter(name, head), _about(name, head))


def _interpreter(name: str, head: str) -> str:
    if head.startswith("#!"):
        words = head[2:].split("\n", 1)[0].split()
        words = [word for word in words if not word.endswith("/env") and not word.startswith("-")]
        if words:
            return words[0].rpartition("/")[2]
    return INTERPRETERS.get(Path(name).suffix.lower(), "")


def _about(name: str, head: str) -> str:
    """Return the first words: of a Python docstring, or of the comment lines at the top."""
    if name.endswith(".py") and (docstring := _docstring(head)):
        return _short(docstring)
    words: list[str] = []
    for line in head.split("\n")[:30]:
        text = line.strip()
        if text.startswith("#!") or (not text and not words):
            continue
        comment = re.match(r"(?:#|//|--|;|\*|/\*+|<#|REM\b|::)\s*(.*?)(?:\*/|#>)?$", text, re.IGNORECASE)
        if comment is None:
            break
        words.append(comment[1])
    return _short(" ".join(words))


_DOCSTRING = re.compile(r"(?:\s++|#[^\n]*+\n)*+[rR]?(\"{3}|'{3}|\"|')(.*?)\1", re.DOTALL)


def _docstring(head: str) -> str:
    """Return the module's docstring. The head may end within a statement, so the docstring is found by its quotes."""
    match = _DOCSTRING.match(head)
    if match is None:
        return ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ignore invalid escapes in a script's docstring
            return str(ast.literal_eval(f"{match[1]}{match[2]}{match[1]}"))
    except (SyntaxError, ValueError):
        return match[2]


def _short(text: str) -> str:
    text = " ".join(text.split("\n\n", 1)[0].split())
    return text if len(text) <= MAX_ABOUT_CHARS else text[: MAX_ABOUT_CHARS - 1].rsplit(" ", 1)[0] + "…"
