"""Loads skills the way the engine does (a synthetic package around ``scripts/``) and builds what they look at."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

from fireswarm.contracts.skills.artifact import Artifact
from fireswarm.contracts.skills.skill import SkillRequest, SkillResult

REPOSITORY = Path(__file__).resolve().parents[2]
SKILLS = REPOSITORY / "skills"
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def skill_module(name: str, module: str = "skill") -> ModuleType:
    """Import ``skills/<name>/scripts/<module>.py`` so that its relative imports work."""
    package = "fireswarm_skill_under_test_" + name.replace("-", "_")
    if package not in sys.modules:
        folder = SKILLS / name / "scripts"
        spec = importlib.machinery.ModuleSpec(package, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
        sys.modules[package] = importlib.util.module_from_spec(spec)
    return importlib.import_module(f"{package}.{module}")


def run_skill(name: str, request: SkillRequest) -> SkillResult:
    """Run a skill on *request* in this process."""
    result: Any = skill_module(name).run(request)
    assert isinstance(result, SkillResult)
    for artifact in result.artifacts:
        assert_storable(artifact.value, artifact.type)
        assert len(json.dumps(artifact.value)) <= 16_384, f"the value of {artifact.type} does not fit a document"
    for fact in result.facts:
        assert_storable(fact.value, fact.key)
    return result


def assert_storable(value: Any, place: str) -> None:
    """Fail on what a Firestore document cannot hold: a list in a list, an empty or reserved key, infinity."""
    if isinstance(value, dict):
        for key, entry in value.items():
            assert isinstance(key, str), place
            assert key, place
            assert not (key.startswith("__") and key.endswith("__")), place
            assert_storable(entry, f"{place}.{key}")
    elif isinstance(value, list | tuple):
        for entry in value:
            assert not isinstance(entry, list | tuple), f"{place} holds a list in a list"
            assert_storable(entry, place)
    else:
        assert value is None or isinstance(value, str | int | float | bool), place
        assert not isinstance(value, float) or math.isfinite(value), place


def kept(request: SkillRequest, result: SkillResult) -> tuple[Artifact, ...]:
    """The artifacts of *result* as a later skill receives them: ``workdir:`` turned into a readable path."""
    found: list[Artifact] = []
    for artifact in result.artifacts:
        uri = artifact.uri
        if uri and uri.startswith("workdir:"):
            uri = str(request.workdir / uri.removeprefix("workdir:"))
        found.append(artifact.model_copy(update={"uri": uri, "source_task_id": request.task_id}))
    return tuple(found)


type MakeRequest = Callable[..., SkillRequest]


class Repository:
    """A git repository made in a test, with dates that the test chooses."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._seconds = 1_700_000_000
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        stamp = f"{self._seconds} +0000"
        environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")} | {
            "GIT_AUTHOR_NAME": "Ada",
            "GIT_AUTHOR_EMAIL": "ada@example.org",
            "GIT_COMMITTER_NAME": "Ada",
            "GIT_COMMITTER_EMAIL": "ada@example.org",
            "GIT_AUTHOR_DATE": stamp,
            "GIT_COMMITTER_DATE": stamp,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
        }
        done = subprocess.run(
            ["git", *arguments], cwd=self.root, env=environment, check=True, capture_output=True, text=True
        )
        return done.stdout

    def write(self, path: str, content: str | bytes) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            file.write_bytes(content)
        else:
            file.write_text(content, encoding="utf-8")

    def commit(self, subject: str, days: float = 1.0) -> None:
        self._seconds += int(days * 86_400)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", subject)
