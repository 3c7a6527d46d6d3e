"""A target that runs on demand rots: each one is run before a release, or is part of one that is."""

from __future__ import annotations

import re
from pathlib import Path

MAKEFILE = (Path(__file__).resolve().parents[2] / "Makefile").read_text()
TOOLS = {"help", "setup", "setup-dev", "generate", "format", "lock", "clean", "release"}
"""Targets that prepare or change something; they test nothing."""


def needs(target: str) -> set[str]:
    found = re.search(rf"^{re.escape(target)}:([^#\n]*)", MAKEFILE, re.M)
    called = re.findall(rf"^{re.escape(target)}:.*\n\t@\$\(MAKE\)(.*)", MAKEFILE, re.M)
    words = " ".join([found[1] if found else "", *called]).split()
    return {word for word in words if re.fullmatch(r"[a-z][a-z-]*", word)}


def test_every_target_is_run_before_a_release() -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", MAKEFILE, re.M))
    listed = re.search(r"^RELEASE := (.*)", MAKEFILE, re.M)
    assert listed is not None
    run: set[str] = set()
    waiting = set(listed[1].split())
    assert waiting <= targets
    while waiting:
        target = waiting.pop()
        run.add(target)
        waiting |= needs(target) - run
    assert targets - TOOLS - run == set()
