"""Run a skill's code in a separate process: a busy skill cannot delay heartbeats, and a cancel ends it.

The child process loads ``scripts/`` as a package, so that a skill's modules can import each other relatively.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
from pydantic import ValidationError

from fireswarm.contracts.base import explain_validation
from fireswarm.contracts.llm.response import AgentResponse, as_result
from fireswarm.contracts.skills.advice import ExecutionMode
from fireswarm.contracts.skills.skill import SkillRequest, SkillResult
from fireswarm.errors import SkillFailed
from fireswarm.processes.child_pool import run_in_child
from fireswarm.skills.packs.catalog import Skill
from fireswarm.skills.running.without_models import without_model_sdks

PARENT_CHECK_SECONDS = 0.5
"""Interval at which a skill's process checks that its worker is alive; otherwise it ends itself."""

MODEL_KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GEMINI_API_KEY", "GOOGLE_API_KEY")
"""Removed from the environment of a skill's process: only the run may call a model, pay for it and count it."""

_guarded = threading.Event()


async def run_skill(
    skill: Skill,
    request: SkillRequest,
    limiter: anyio.CapacityLimiter | None = None,
    hold: Callable[[], Awaitable[float]] | None = None,
) -> SkillResult:
    """Run a skill that has code; cancelling the call kills its process.

    *hold* returns the seconds in which the skill may still start, or raises LeaseLost. The skill's process checks the
    clock right before the start: starting a process takes time, and this process may be suspended meanwhile.
    Raises SkillFailed if the skill raises (with its traceback), dies, or does not return a SkillResult.
    """
    if skill.entry is None:
        raise SkillFailed(
            f"skill {skill.name!r} has only instructions: run it with a model, or add an entry to its metadata"
        )
    try:
        place = (str(skill.folder), str(skill.entry), skill.execution_mode is ExecutionMode.DETERMINISTIC)
        text, asked = None, request.model_dump_json()
        while text is None:
            until = time.time() + await hold() if hold is not None else float("inf")
            text = await run_in_child(_in_child, *place, asked, until, limiter=limiter)
    except anyio.BrokenWorkerProcess as error:
        raise SkillFailed(
            f"the process of skill {skill.name!r} ended unexpectedly: out of memory, killed, or crashed"
        ) from error
    ok, content = text
    if not ok:
        raise SkillFailed(f"skill {skill.name!r} {content}")
    try:
        return SkillResult.model_validate_json(content)
    except ValidationError as error:
        raise SkillFailed(f"skill {skill.name!r} returned an invalid result: {explain_validation(error)}") from error


def _in_child(folder: str, entry: str, deterministic: bool, request: str, until: float) -> tuple[bool, str] | None:
    """Run the skill; returns None if it is too late to start."""
    _end_with_parent()
    try:
        with without_model_sdks() if deterministic else contextlib.nullcontext():
            module = load_entry(Path(folder), Path(entry))
            asked = SkillRequest.model_validate_json(request)
            if time.time() >= until:
                return None
            result: Any = module.run(asked)
    except Exception as error:  # foreign code may raise anything; every error becomes a typed failure
        lines = traceback.format_exception(error, limit=-8)
        return False, f"raised {lines[-1].strip()}\n{''.join(lines)[-6_000:]}"
    if isinstance(result, AgentResponse):
        try:
            result = as_result(result)
        except ValueError as error:
            return False, f"returned an invalid AgentResponse: {error}"
    if not isinstance(result, SkillResult):
        return False, f"returned {type(result).__name__} instead of SkillResult"
    return True, result.model_dump_json()


def load_entry(folder: Path, entry: Path) -> ModuleType:
    """Import a skill's entry as ``fireswarm_skill_<name>.<entry>``, with its scripts folder as the package."""
    package_name = f"fireswarm_skill_{folder.name.replace('-', '_')}"
    scripts = (folder / entry).parent
    known = sys.modules.get(package_name)
    if known is None or list(known.__path__) != [str(scripts)]:
        for stale in [name for name in sys.modules if name == package_name or name.startswith(package_name + ".")]:
            del sys.modules[stale]
        spec = importlib.util.spec_from_loader(package_name, loader=None, is_package=True)
        assert spec is not None
        package = importlib.util.module_from_spec(spec)
        package.__path__ = [str(scripts)]
        sys.modules[package_name] = package
    return importlib.import_module(f"{package_name}.{entry.stem}")


def _end_with_parent() -> None:
    """Once per process: remove the models' keys, and start a thread that ends the process when its worker is gone."""
    if _guarded.is_set():
        return
    _guarded.set()
    for name in MODEL_KEYS:
        os.environ.pop(name, None)
    parent = os.getppid()

    def watch() -> None:
        pause = threading.Event()
        while os.getppid() == parent:
            pause.wait(PARENT_CHECK_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, name="end-with-parent", daemon=True).start()
