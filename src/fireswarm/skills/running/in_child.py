"""Run a skill's entry, in a child process.

It loads ``scripts/`` as a package, so that a skill's modules can import each other relatively. Each child imports this
module at its start, so its imports must be fast.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.machinery
import importlib.util
import math
import os
import signal
import sys
import threading
import traceback
import zlib
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from fireswarm.contracts.skills.artifact import OUTPUT_FOLDER, OUTPUT_VARIABLE
from fireswarm.contracts.skills.skill import SkillRequest, SkillResult
from fireswarm.errors import SandboxRefused
from fireswarm.processes.messages import steady_seconds
from fireswarm.skills.running import end_time
from fireswarm.skills.running.without_models import without_model_sdks

PARENT_CHECK_SECONDS = 0.5
"""Interval at which a skill's process checks that its worker is alive; otherwise it ends itself."""

MODEL_KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GEMINI_API_KEY", "GOOGLE_API_KEY")
"""Removed from the environment of a skill's process: only the run may call a model, which it pays and counts."""

RESPONSES = "fireswarm.contracts.llm.response"
"""Module of AgentResponse. It is imported already if a skill returns one."""


class _SourceLoader(importlib.machinery.SourceFileLoader):
    """Loads a module from its source, and neither reads nor writes compiled code beside it.

    A person reads the source. Compiled code beside it may be of another one.
    """

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the code of a module, compiled now."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


_guarded = threading.Event()
_loaded: dict[str, tuple[tuple[str, int], ...]] = {}
"""Packages of skills, with the stamp of the modules that were imported."""

_ends: list[str] = []
"""The file with the end of the call that runs."""


def run_entry(folder: str, entry: str, deterministic: bool, request: str, end: str) -> tuple[bool, str] | None:
    """Run a skill's entry on a request as JSON; return None if it is too late to start: *end* is the file of its end.

    Returns True and the result as JSON, or False and the description of the failure.
    """
    _end_with_parent()
    _ends.clear()
    try:
        with without_model_sdks() if deterministic else contextlib.nullcontext():
            module = load_entry(Path(folder), Path(entry))
            asked = SkillRequest.model_validate_json(request)
            if end and end_time.has_passed(end, end_time.Checked(steady_seconds(), -math.inf))[0]:
                return None
            _ends.append(end)
            result: Any = module.run(_with_output_folder(asked))
    except SandboxRefused as refused:
        result = SkillResult.failure(str(refused)).model_copy(update={"needs_confinement": True})
    except Exception as error:  # foreign code may raise anything; every error becomes a typed failure
        lines = traceback.format_exception(error, limit=-8)
        return False, f"raised {lines[-1].strip()}\n{''.join(lines)[-6_000:]}"
    finally:
        _ends.clear()
    responses = sys.modules.get(RESPONSES)
    if responses is not None and isinstance(result, responses.AgentResponse):
        try:
            result = responses.as_result(result)
        except ValueError as error:
            return False, f"returned an invalid AgentResponse: {error}"
    if not isinstance(result, SkillResult):
        return False, f"returned {type(result).__name__} instead of SkillResult"
    return True, result.model_dump_json()


def _with_output_folder(request: SkillRequest) -> SkillRequest:
    """Create the folder for further outputs, and set its path in the skill's environment."""
    folder = request.workdir / OUTPUT_FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    os.environ[OUTPUT_VARIABLE] = str(folder)
    return request


def load_entry(folder: Path, entry: Path) -> ModuleType:
    """Import a skill's entry as ``fireswarm_skill_<name>.<entry>``, with its scripts folder as the package."""
    package_name = f"fireswarm_skill_{folder.name.replace('-', '_')}"
    scripts = (folder / entry).parent
    known, stamp = sys.modules.get(package_name), _stamp(scripts)
    if known is None or list(known.__path__) != [str(scripts)] or _loaded.get(package_name) != stamp:
        importlib.invalidate_caches()
        _loaded[package_name] = stamp
        for stale in [name for name in sys.modules if name == package_name or name.startswith(package_name + ".")]:
            del sys.modules[stale]
        spec = importlib.util.spec_from_loader(package_name, loader=None, is_package=True)
        assert spec is not None
        package = importlib.util.module_from_spec(spec)
        package.__path__ = [str(scripts)]
        _load_from_source(scripts)
        sys.modules[package_name] = package
    return importlib.import_module(f"{package_name}.{entry.stem}")


def _load_from_source(scripts: Path) -> None:
    """Load what is in a folder from source only. Other folders are loaded as usual."""
    place = str(scripts)
    make_finder = importlib.machinery.FileFinder.path_hook(
        (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES),
        (_SourceLoader, importlib.machinery.SOURCE_SUFFIXES),
    )

    def find_in_scripts(path: str) -> Any:
        if path != place and not path.startswith(f"{place}{os.sep}"):
            raise ImportError
        return make_finder(path)

    sys.path_hooks.insert(0, find_in_scripts)
    for known in [path for path in sys.path_importer_cache if path == place or path.startswith(f"{place}{os.sep}")]:
        del sys.path_importer_cache[known]


def _stamp(folder: Path) -> tuple[tuple[str, int], ...]:
    """Return name and checksum of each module: a changed skill is imported again."""
    return tuple((str(path), zlib.crc32(path.read_bytes())) for path in sorted(folder.rglob("*.py")) if path.is_file())


def _end_with_parent() -> None:
    """Once per process: remove the models' keys, and watch the worker and the end of the call in a thread."""
    if _guarded.is_set():
        return
    _guarded.set()
    sys.dont_write_bytecode = True  # compiled code is compared by the second only, and a skill may change twice in one
    for name in MODEL_KEYS:
        os.environ.pop(name, None)
    parent = os.getppid()

    def watch() -> None:
        pause, checked = threading.Event(), end_time.Checked(steady_seconds(), -math.inf)
        has_passed = False
        while os.getppid() == parent and not has_passed:
            pause.wait(PARENT_CHECK_SECONDS)
            has_passed, checked = end_time.has_passed(next(iter(_ends), ""), checked)
        if has_passed and os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)  # also what the skill has started
        os._exit(1)

    threading.Thread(target=watch, name="end-with-parent", daemon=True).start()
