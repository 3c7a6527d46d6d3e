"""Check that the scripts named by a skill are in its folder."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from fireswarm.skills.packs import skill_body
from fireswarm.skills.packs.parse import Parsed

_ABSOLUTE = re.compile(r"/|~|[A-Za-z]:[\\/]|\\\\")
_PLACEHOLDER = re.compile(r"/?(?:absolute/)?path/to/|.*[<>{}$*]|/your/|.*\.\.\.")
"""Placeholders in examples: ``/path/to/x.py``, ``<folder>/x.sh``, ``$HOME/x.sh`` (unknown location)."""


def outside(parsed: Parsed, folder: Path) -> tuple[str, ...]:
    """Return a sentence for each script that a SKILL.md names outside of *folder*.

    It checks links, code spans and the commands in code fences.
    """
    text = parsed.body
    if not skill_body.names_scripts(text):
        return ()
    named = [
        (mention.path, mention.line) for mention in skill_body.mentions(text) if skill_body.is_script(mention.path)
    ]
    named += skill_body.commands(text)
    faults = [
        f"line {line + parsed.body_line - 1}: the script {path} is outside the skill's folder"
        for path, line in dict(named).items()
        if leads_outside(path, folder)
    ]
    return tuple(faults)


def entry_outside(metadata: Mapping[str, str], folder: Path) -> tuple[str, ...]:
    """Return the fault of ``metadata.entry`` if it is outside of *folder*, otherwise an empty tuple."""
    entry = metadata.get("entry", "")
    if not entry or not leads_outside(entry, folder):
        return ()
    return (f"its entry {entry!r} is outside its folder and is ignored",)


def leads_outside(path: str, folder: Path) -> bool:
    """Return True if *path*, as a skill in *folder* writes it, is outside of *folder*."""
    steps = path.replace("\\", "/")
    if _PLACEHOLDER.match(steps) and "../" not in steps:
        return False
    if _ABSOLUTE.match(path):
        return True
    depth = 0
    for step in steps.split("/"):
        depth += {"..": -1, ".": 0, "": 0}.get(step, 1)
        if depth < 0:
            return True
    return _escapes(f"{folder}/{steps}", folder)


def _escapes(path: str, folder: Path) -> bool:
    """Return True if a symbolic link in the path leads outside; False for a path that does not exist."""
    try:
        if not os.path.exists(path):  # noqa: PTH110 - asked for every file that 20,000 skills name
            return False
        return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
    except (OSError, ValueError):
        return True
