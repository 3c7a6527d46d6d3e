"""Judge what a run left: commands are run, files compared, facts searched. What the agent claims proves nothing."""

from __future__ import annotations

import csv
import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.agent_tasks.evidence import find_fault_of_evidence
from benchmarks.agent_tasks.task import (
    AnswerCheck,
    BenchTask,
    Check,
    EvidenceCheck,
    FileCheck,
    RunCheck,
    SameContentCheck,
    UnchangedCheck,
)
from fireswarm.contracts.linear_pattern import match_glob
from fireswarm.processes.confinement.process_limits import ProcessLimits
from fireswarm.processes.confinement.view import View
from fireswarm.processes.shell import Shell
from fireswarm.settings.agent import RuntimeSettings

COMMAND_SECONDS = 60.0
MAX_READ_BYTES = 5_000_000
MAX_TOLD_CHARS = 200
MAX_TOLD_BYTES = 16_000
NOT_COMPARED = ("**/__pycache__/**", "__pycache__/**", ".git/**", ".pytest_cache/**")
"""Files that running a program or git leaves behind."""

_SPACES = re.compile("[\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{THIN SPACE}]")

Digests = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Leavings:
    """What a run left: the project's folder with its digests from before, the output folders, and the answer."""

    project: Path
    before: Digests
    outputs: Sequence[Path] = ()
    answer: str = ""


async def failures_of(task: BenchTask, left: Leavings, runtime: RuntimeSettings, path: str) -> list[str]:
    """Return what failed, a sentence for each check; commands get the PATH *path*."""
    failed: list[str] = []
    for check in task.file.checks:
        if (detail := await _fault_of(check, task, left, runtime, path)) is not None:
            failed.append(f"{check.why}{f' ({detail})' if detail else ''}")
    return failed


def digests_of(folder: Path) -> dict[str, str]:
    """Return a digest of each file below *folder*, by its path; a link counts as what it points to."""
    digests: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if any(match_glob(glob, name) for glob in NOT_COMPARED):
            continue
        if path.is_symlink():
            digests[name] = f"-> {path.readlink()}"
        elif path.is_file():
            digests[name] = _digest_of(path)
        elif not path.is_dir():
            digests[name] = "neither a file nor a folder"
    return digests


def _digest_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return f"cannot be read: {error.strerror}"


async def _fault_of(check: Check, task: BenchTask, left: Leavings, runtime: RuntimeSettings, path: str) -> str | None:
    """Return None if the check holds, else a detail of what is wrong, or ""."""
    match check:
        case RunCheck():
            return await _run(check, task, left, runtime, path)
        case AnswerCheck():
            return _patterns(left.answer, check.has)
        case FileCheck():
            return _file(check, left)
        case SameContentCheck():
            folders = [left.project] if check.where == "project" else left.outputs
            paths = [folder / check.path for folder in folders]
            found = next((path for path in paths if path.is_file()), left.project / check.path)
            return _content(found, task.hidden / check.expected)
        case EvidenceCheck():
            return _evidence(check, left)
        case UnchangedCheck():
            return _changes(check, left)


async def _run(check: RunCheck, task: BenchTask, left: Leavings, runtime: RuntimeSettings, path: str) -> str | None:
    """Run the command in a copy, confined as the agent's own commands: what a model wrote is run here."""
    with tempfile.TemporaryDirectory(prefix="fireswarm-check-") as folder:
        copy = Path(folder) / "project"
        shutil.copytree(left.project, copy, symlinks=True, ignore=_not_copied)
        if check.files is not None:
            _put_all(task.hidden / check.files, copy, Path())
        for folder_of_run in left.outputs if check.delivered else ():
            _put_all(folder_of_run, copy, Path(check.delivered))
        for name in check.restored:
            _put(task.project / name, copy, Path(name))
        environment = {"PATH": path, "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
        limits = ProcessLimits()
        shell = Shell.of(runtime.shell_linux, runtime.shell_windows, MAX_TOLD_BYTES, environment, limits)
        confinement = runtime.confinement
        view = None if confinement == "none" else View(copy, True, runtime.readable, confinement=confinement)
        ran = await shell.run(check.command, copy, COMMAND_SECONDS, view)
    told = f"{ran.stdout}\n{ran.stderr}".strip()
    if ran.timed_out:
        return f"`{check.command}` took more than {COMMAND_SECONDS:g} s"
    if (ran.exit_code != 0) is not check.fails:
        return f"`{check.command}` ended with {ran.exit_code}: {_last_line(told)}"
    missing = _missing(told, check.says)
    return f"`{check.command}` does not say {missing!r}: {_last_line(told)}" if missing else None


def _not_copied(folder: str, names: list[str]) -> list[str]:
    """Return the names of caches, and of pipes and sockets, which cannot be copied."""

    def is_usual(path: Path) -> bool:
        return path.is_symlink() or path.is_file() or path.is_dir()

    return [name for name in names if name == "__pycache__" or not is_usual(Path(folder) / name)]


def _put_all(folder: Path, copy: Path, below: Path) -> None:
    for source in sorted(folder.rglob("*")):
        if source.is_file() and not source.is_symlink() and "__pycache__" not in source.parts:
            _put(source, copy, below / source.relative_to(folder))


def _put(source: Path, copy: Path, name: Path) -> None:
    """Copy a hidden file over whatever a run has put in its place, also a link to somewhere else."""
    target, folder = copy / name, copy
    for part in name.parts[:-1]:
        folder /= part
        if folder.is_symlink() or not folder.is_dir():
            folder.unlink(missing_ok=True)
        folder.mkdir(exist_ok=True)
    if target.is_dir() and not target.is_symlink():
        shutil.rmtree(target)
    target.unlink(missing_ok=True)
    shutil.copyfile(source, target)


def _patterns(text: str, has: Sequence[str]) -> str | None:
    """Return None if *text* has all of the patterns."""
    missing = _missing(text, has)
    if missing is None:
        return None
    return f"no {missing!r} in it" if text.strip() else "there is none"


def _missing(text: str, patterns: Sequence[str]) -> str | None:
    return next((pattern for pattern in patterns if not _found(pattern, text)), None)


def _found(pattern: str, text: str) -> bool:
    """Search without regard to case; a space in the pattern is any of those that stand between digits."""
    return re.search(pattern, _SPACES.sub(" ", text), re.IGNORECASE | re.MULTILINE) is not None


def _file(check: FileCheck, left: Leavings) -> str | None:
    fault = f"there is no {check.path}"
    for folder in [left.project] if check.where == "project" else left.outputs:
        for path in sorted(folder.glob(check.path)):
            text = _text(path)
            found = _patterns(text, check.has)
            words = sum(any(map(str.isalnum, word)) for word in text.split())
            if found is None and (check.max_words is None or words <= check.max_words):
                return None
            fault = f"{path.name}: {found or f'{words} words'}"
    return fault


def _text(path: Path) -> str:
    """Return the text of a regular file that is not too large, or ""."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_READ_BYTES:
        return ""
    return path.read_bytes().decode("utf-8-sig", "replace")


def _evidence(check: EvidenceCheck, left: Leavings) -> str | None:
    if not check.path:
        return find_fault_of_evidence(left.answer, left.project, check.cites)
    texts = [_text(path) for folder in left.outputs for path in sorted(folder.glob(check.path))]
    faults = [find_fault_of_evidence(text, left.project, check.cites) for text in texts]
    return None if None in faults else next(iter(faults), f"there is no {check.path}")


def _content(path: Path, expected: Path) -> str | None:
    text = _text(path)
    if not text:
        return f"{path.name} is missing or empty"
    try:
        if path.suffix == ".json":
            return _difference(json.loads(text), json.loads(expected.read_text(encoding="utf-8")))
        return _difference(_rows(text), _rows(expected.read_text(encoding="utf-8")))
    except (ValueError, RecursionError, csv.Error) as error:
        return f"{path.name} cannot be read: {str(error)[:MAX_TOLD_CHARS]}"


def _rows(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in row] for row in csv.reader(text.splitlines()) if row]


def _difference(found: Any, expected: Any, place: str = "") -> str | None:
    """Return the first difference of two values; numbers are equal if a cent would not tell them apart."""
    where = place or "the whole"
    if isinstance(expected, dict) and isinstance(found, dict):
        if set(found) != set(expected):
            return f"{where} has the keys {sorted(found)}"
        pairs = ((found[key], value, f"{place}.{key}".lstrip(".")) for key, value in expected.items())
    elif isinstance(expected, list) and isinstance(found, list):
        if len(found) != len(expected):
            return f"{where} has {len(found)} items instead of {len(expected)}"
        pairs = (
            (one, other, f"{place}[{number}]") for number, (one, other) in enumerate(zip(found, expected, strict=True))
        )
    elif _is_number(expected) and _is_number(found):
        return None if abs(found - expected) < 0.005 else f"{where} is {found}"
    else:
        same = type(found) is type(expected) and found == expected
        return None if same else f"{where} is {json.dumps(found)[:MAX_TOLD_CHARS]}"
    return next((fault for pair in pairs if (fault := _difference(*pair)) is not None), None)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _changes(check: UnchangedCheck, left: Leavings) -> str | None:
    after = digests_of(left.project)
    names = sorted(
        name
        for name in {*left.before, *after}
        if left.before.get(name) != after.get(name) and not any(match_glob(glob, name) for glob in check.but)
    )
    if not names:
        return None
    kinds = {name: "added" if name not in left.before else "gone" if name not in after else "changed" for name in names}
    told = ", ".join(f"{name} {kinds[name]}" for name in names)
    return told[:MAX_TOLD_CHARS]


def _last_line(text: str) -> str:
    return (text.splitlines() or ["no output"])[-1].strip()[:MAX_TOLD_CHARS]
