"""Run a skill's code in a separate process: a busy skill cannot delay heartbeats, and a cancellation kills it."""

from __future__ import annotations

import errno
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import anyio
from pydantic import ValidationError

from fireswarm.contracts.base import explain_validation
from fireswarm.contracts.skills.advice import ExecutionMode
from fireswarm.contracts.skills.artifact import PIPELINE_FILE, type_refusal
from fireswarm.contracts.skills.skill import SkillRequest, SkillResult
from fireswarm.errors import PlaceRefused, SandboxRefused, SkillFailed, SkillRefused
from fireswarm.processes.child_pool import Hold, call_pooled, ending, run_in_child
from fireswarm.processes.confinement.ladder import CONFINING, choose_rung
from fireswarm.processes.confinement.paths.names import OWN_FOLDER
from fireswarm.processes.confinement.protected import is_kept
from fireswarm.processes.confinement.view import is_workspace
from fireswarm.settings.packaged import packaged_path
from fireswarm.skills.packs.catalog import Skill
from fireswarm.skills.running.denied_reads import DeniedReads
from fireswarm.skills.running.in_child import MODEL_KEYS, run_entry
from fireswarm.skills.running.returned import as_returned
from fireswarm.skills.running.skill_process import ConfinedProcess, Reach

REFUSED_ERRORS = (f"[Errno {errno.EROFS}]", f"PermissionError: [Errno {errno.EACCES}]")
CONFINED_HINT = (
    "\nThe code of a skill can write to its workdir and to the folder of the task's `path` only, and there only if its "
    'metadata does not say writes: "false". It reads these, its own folder, the files that the task names, and '
    "programs; the operator can add folders with `runtime.readable`."
)
MAX_PATH_CHARS = 4_096

_MISSING = re.compile(r"No such file or directory: '(/[^']+)'")


@dataclass(frozen=True, slots=True)
class CodeRules:
    """The operator's rules for the code of skills, from `RuntimeSettings`.

    ``workdirs`` is the folder of all workdirs: results of skills are below it.
    ``denied`` are files that the code does not read; with such rules, the packaged skills are confined too.
    ``trusted`` are the names of skills that are confined as little as the packaged ones.
    ``root`` is the folder of the run: its protected names are not written by a skill that works in one of them, paths
    in ``denied`` are relative to it, and a request's path in it has no links.
    """

    confinement: str = "auto"
    pass_environment: tuple[str, ...] = ()
    readable: tuple[Path, ...] = ()
    workdirs: Path | None = None
    denied: DeniedReads = DeniedReads()
    trusted: frozenset[str] = frozenset()
    root: Path | None = None


async def run_skill(
    skill: Skill,
    request: SkillRequest,
    limiter: anyio.CapacityLimiter | None = None,
    hold: Hold | None = None,
    rules: CodeRules | None = None,
) -> SkillResult:
    """Run a skill that has code; cancelling the call kills its process.

    The process can write to the request's workdir, and to the folder of its ``path`` if the skill declares that it
    writes. For a ``read_only`` request, it can write only to its workdir, and has no network. The packaged skills are
    confined only for such requests.

    With *hold*, the skill's process checks the clock right before the start, since starting a process takes time and
    this process may be suspended meanwhile, and ends itself when the hold has ended without a renewal.
    Raises SkillFailed if the skill raises (with its traceback), dies, or does not return a SkillResult, and
    SandboxRefused if it cannot be confined here, and SkillRefused for a path that may not be read.
    """
    if skill.entry is None:
        raise SkillFailed(
            f"skill {skill.name!r} has only instructions: run it with a model, or add an entry to its metadata"
        )
    rules = rules or CodeRules()
    read_only, reach = bool(request.constraints.get("read_only")), _reach(skill, request, rules)
    try:
        call = (str(skill.folder), str(skill.entry), skill.execution_mode is ExecutionMode.DETERMINISTIC)
        text, asked = None, request.model_dump_json()
        while text is None:
            with ending(hold, await hold.seconds_left() if hold is not None else math.inf) as end:
                if reach is None:
                    text = await run_in_child(run_entry, *call, asked, end, limiter=limiter)
                else:
                    text = await call_pooled(partial(ConfinedProcess, reach), None, (*call, asked, end), limiter)
        ok, content = text
        if not ok:
            raise SkillFailed(f"{content}{_hint(content, reach)}")
        result = SkillResult.model_validate_json(content)
        return as_returned(result, request, partial(_type_refusal, skill)) if result.has_parts else result
    except ValidationError as error:
        raise SkillFailed(f"skill {skill.name!r} returned an invalid result: {explain_validation(error)}") from error
    except (anyio.BrokenWorkerProcess, EOFError, BrokenPipeError) as error:
        raise SkillFailed(
            f"the process of skill {skill.name!r} ended unexpectedly: out of memory, killed, or crashed"
        ) from error
    except PlaceRefused as error:
        raise SkillRefused(f"{skill.name}: {error}") from error
    except SandboxRefused as error:
        raise SandboxRefused(_refusal(skill, read_only, error)) from error
    except SkillFailed as error:
        raise SkillFailed(f"skill {skill.name!r} {error}") from error


def _type_refusal(skill: Skill, kind: str) -> str:
    """Return why *skill* may not make artifacts of a type, or "": a skill of the folder has no name that counts.

    Steps of other pipelines carry files too; those of the node pipeline take the files of their own run only.
    """
    if skill.is_material:
        return type_refusal(kind)
    return "" if kind == PIPELINE_FILE and skill.execution_mode else type_refusal(kind, skill.name)


def _hint(error: str, reach: Reach | None) -> str:
    """Return what to tell of an error that the confinement may have caused, or ""."""
    if reach is None:
        return ""
    unseen = any(Path(name).parent.is_dir() for name in _MISSING.findall(error))
    return CONFINED_HINT if unseen or any(each in error for each in REFUSED_ERRORS) else ""


@cache
def _packaged_skills() -> Path:
    return packaged_path("skills").resolve()


def is_foreign(skill: Skill) -> bool:
    """Return True if *skill* did not come with fireswarm: its code is confined in every task."""
    return not skill.folder.resolve().is_relative_to(_packaged_skills())


def _is_confined(skill: Skill, rules: CodeRules, names_places: bool) -> bool:
    """Return True if the code is confined.

    A packaged skill is, if its request names files or has attachments, which other code may replace by links meanwhile;
    the files of other tasks are where no such code sees them. Where nothing can be confined, no such code runs. A
    packaged skill with ``metadata.confinement: own`` is confined with rules for reading only: it needs files of a
    program that it confines itself, or writes to the repository of the objective.
    """
    if is_foreign(skill):
        return skill.name not in rules.trusted or bool(skill.outside)
    return names_places and skill.metadata.get("confinement") != "own" and _can_confine(rules.confinement)


def _can_confine(confinement: str) -> bool:
    try:
        return confinement in CONFINING and bool(choose_rung(confinement))
    except SandboxRefused:
        return False


def _reach(skill: Skill, request: SkillRequest, rules: CodeRules) -> Reach | None:
    """Return what the skill's code can read, write to and use; None if it is not confined."""
    workdir = request.workdir.resolve()
    context = request.context if is_foreign(skill) else {**request.context, **request.answers}
    inputs, folders = _given_files(request), _workspaces(context, rules.root)
    named = () if is_foreign(skill) else _named_places(context, rules.root)
    hidden = tuple(dict.fromkeys(place for each in (*folders, *named) for place in _hidden_in(each, rules)))
    if hidden and not skill.writes:  # a workspace can be listed although a part of it is hidden
        folders = tuple(dict.fromkeys((*folders, *(place for place in named if place.is_dir()))))
    is_confined = bool(hidden) or _is_confined(skill, rules, bool(folders or named or request.attachments))
    hidden += _compiled_in(skill.folder) if is_foreign(skill) else ()
    allowed = (place.expanduser().resolve() for place in rules.readable)
    readable = (skill.folder.resolve(), _packaged_skills(), *allowed, *inputs, *named)
    if request.constraints.get("read_only") and rules.confinement != "none":
        confined = rules.confinement if rules.confinement in CONFINING else "auto"
        return Reach(workdir, folders, readable=readable, confinement=confined, hidden=hidden)
    if rules.confinement not in CONFINING or not is_confined:
        return None
    passed = tuple(name for name in rules.pass_environment if name not in MODEL_KEYS)
    return Reach(
        workdir,
        folders,
        writes=skill.writes and not any(_is_kept(folder, rules.root) for folder in folders),
        readable=readable,
        network=True,
        passed=passed,
        confinement=rules.confinement,
        hidden=hidden,
    )


def _compiled_in(folder: Path) -> tuple[Path, ...]:
    """Return the compiled code in a skill's folder: it may be of another source than the one that a person reads."""
    found = (place for place in folder.resolve().rglob("*") if place.name == "__pycache__" or place.suffix == ".pyc")
    return tuple(sorted(place for place in found if "__pycache__" not in place.parent.parts))


def _given_files(request: SkillRequest) -> tuple[Path, ...]:
    """Return the files that the request names with ``file://``: results of other tasks, and attachments.

    A person attaches a file by its real path. Raises SkillRefused if a part of that is a link by now.
    """
    children = (item for child in request.children for item in child.artifacts)
    results = {path.resolve() for path in _paths_of(item.uri for item in (*request.artifacts, *children))}
    attached = _paths_of(item.uri for item in request.attachments)
    for path in attached:
        if path.resolve() != path:
            raise SkillRefused(f"the attached {path} has become a link to another place")
    return tuple(sorted(results | attached))


def _paths_of(uris: Iterable[str | None]) -> set[Path]:
    """Return the existing files among *uris*."""
    texts = (unquote(uri.removeprefix("file://")) for uri in uris if uri is not None and uri.startswith("file://"))
    return {Path(text) for text in texts if text.startswith("/") and "\0" not in text and Path(text).exists()}


def _named_places(context: Mapping[str, Any], root: Path | None) -> tuple[Path, ...]:
    """Return the files and folders that the context for a packaged skill names, such as ``source``.

    Raises SkillRefused for one in *root* that has become a link since it was checked.
    """
    texts = [value.removeprefix("file://") for value in context.values() if isinstance(value, str)]
    paths = [Path(text) for text in texts if text.startswith("/") and "\0" not in text and len(text) < MAX_PATH_CHARS]
    return tuple(_real_place(path, root) for path in paths if path.exists() and is_workspace(path.resolve()))


def _real_place(given: Path, root: Path | None) -> Path:
    """Return a place without links. Raises SkillRefused if it leads out of *root*, or to what nobody sees there."""
    path = given.resolve()
    if root is None or given == path or not given.is_relative_to(root):
        return path
    if not path.is_relative_to(root) or {OWN_FOLDER} & {*path.parts} - {*given.parts}:
        raise SkillRefused(f"{given} has become a link to another place")
    return path


def _workspaces(context: Mapping[str, Any], root: Path | None) -> tuple[Path, ...]:
    """Return the folder in the context's ``path``, or the folder of that file; () without a path.

    Raises SkillRefused for a path in *root* that has become a link since it was checked.
    """
    named = context.get("path")
    if not isinstance(named, str) or not named or "\0" in named or "://" in named.removeprefix("file://"):
        return ()
    path = _real_place(Path(named.removeprefix("file://")).expanduser(), root)
    return (path,) if path.is_dir() else (path.parent,) if path.is_file() else ()


def _is_kept(folder: Path, root: Path | None) -> bool:
    """Return True for a folder that belongs to the protected places of *root*."""
    return root is not None and folder.is_relative_to(root) and is_kept(folder, root)


def _hidden_in(named: Path, rules: CodeRules) -> tuple[Path, ...]:
    """Return what may not be read of a folder or file. Raises SkillRefused if nothing of it may be."""
    folder = named if named.is_dir() else named.parent
    base = rules.root if rules.root is not None and folder.is_relative_to(rules.root) else folder
    places = rules.denied.places(base)
    if any(named.is_relative_to(place) for place in places):
        raise SkillRefused(f"{named} may not be read: the permissions deny it")
    return tuple(place for place in places if base == named or place.is_relative_to(named))


def _refusal(skill: Skill, read_only: bool, error: SandboxRefused) -> str:
    if read_only:
        return f"the task is read_only, and the code of skill {skill.name!r} cannot be confined: {error}"
    return (
        f"the code of skill {skill.name!r} cannot be confined: {error}; only the operator can allow it unconfined "
        f"(`runtime.confinement: none`, or `container` in a container)"
    )
