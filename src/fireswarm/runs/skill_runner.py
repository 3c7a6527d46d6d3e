"""Run skills with code for a model's run, and pass the results of one to the next."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import anyio
import anyio.to_thread

from fireswarm.contracts.skills.artifact import Artifact, Signal
from fireswarm.contracts.skills.skill import SkillRequest, SkillResult, SkillState
from fireswarm.errors import SkillFailed, SkillRefused
from fireswarm.processes.child_pool import Hold
from fireswarm.processes.confinement.paths.names import OWN_FOLDER
from fireswarm.settings.run_folders import make_state_folder
from fireswarm.skills.packs.catalog import Skill
from fireswarm.skills.running.execute import CodeRules, run_skill
from fireswarm.skills.running.inline_call import call_within

Publish = Callable[[SkillResult, Path], Awaitable[tuple[SkillResult, tuple[Artifact, ...]]]]
"""Stores the files in a skill's workdir; returns the result, and its artifacts in a form that the next skill can read.
"""


FILE_KEYS = ("csv", "repository", "source")
"""Keys of a context beside ``path`` that skills which come with fireswarm take for a file or folder."""


@dataclass(slots=True)
class SkillRunner:
    """Runs skills on *request*, with the parameters of each call in its context.

    ``advice`` is for a model that calls a skill which needs its own task. ``hold`` is the lease that a
    skill's process needs. A call ends after ``timeout_seconds``, at the time that ``ends_at`` returns for its request.
    ``artifacts`` and ``signals`` are the results of all skills so far. ``root`` is the folder in which the ``path``
    of a call lies: a model, or a skill that plans further calls, names no other.
    """

    request: SkillRequest
    rules: CodeRules
    advice: str
    publish: Publish
    root: Path
    limiter: anyio.CapacityLimiter | None = None
    hold: Hold | None = None
    timeout_seconds: float | None = None
    ends_at: Callable[[], datetime] | None = None
    artifacts: list[Artifact] = field(default_factory=list[Artifact])
    signals: list[Signal] = field(default_factory=list[Signal])

    def __post_init__(self) -> None:
        """Note where the folder is now: it stays there, also if it is exchanged for a link meanwhile."""
        self.root = self.root.resolve()

    async def run(self, skill: Skill, params: Mapping[str, Any], answers: Mapping[str, Any]) -> SkillResult:
        """Run *skill* with the *answers* to its questions; its artifacts are published before its result returns."""
        return await self.run_with(skill, params, answers=dict(answers))

    async def run_with(self, skill: Skill, params: Mapping[str, Any], **more: Any) -> SkillResult:
        """Run *skill*; *more* are further fields of its request. The next skill gets its artifacts and signals."""
        result, readable = await self.run_once(self.request.workdir / skill.name, skill, params, **more)
        if result.state not in (SkillState.FAILED, SkillState.DELEGATING):
            self.artifacts += readable
            self.signals += result.signals
        return result

    async def run_once(
        self, workdir: Path, skill: Skill, params: Mapping[str, Any], **more: Any
    ) -> tuple[SkillResult, tuple[Artifact, ...]]:
        """Run *skill* in *workdir*; returns its result, and its artifacts in a form that the next skill can read.

        Raises SkillFailed and SkillRefused.
        """
        await anyio.to_thread.run_sync(make_state_folder, workdir)
        params = await anyio.to_thread.run_sync(self._with_inner_path, skill, params)
        request = self.request.model_copy(
            update={
                "context": {**self.request.context, **params},
                "artifacts": (*self.request.artifacts, *self.artifacts),
                "signals": (*self.request.signals, *self.signals),
                "workdir": workdir,
                **({"deadline": self.ends_at()} if self.ends_at is not None else {}),
                **more,
            }
        )
        if self.root.resolve() != self.root:
            raise SkillRefused(f"{skill.name}: {self.root} has become a link to another place")
        rules = replace(self.rules, root=self.root)
        run = partial(run_skill, limiter=self.limiter, hold=self.hold, rules=rules)
        try:
            with anyio.fail_after(self.timeout_seconds):
                result = await call_within(skill, request, self.advice, run)
        except TimeoutError as error:
            raise SkillFailed(f"skill {skill.name!r} was stopped after {self.timeout_seconds:g} s") from error
        if result.state is SkillState.FAILED:
            return result, ()
        return await self.publish(result, workdir)

    def _with_inner_files(self, skill: Skill, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return *params* with their files in full: the process of a skill may have another current folder.

        Raises SkillRefused if one names a place outside of the root that exists, also by a link.
        """
        root, workdirs = self.root, self.rules.workdirs
        whole: dict[str, str] = {}
        for key, value in params.items():
            if not isinstance(value, str) or value == self.request.context.get(key):
                continue
            for place in places_named(key, value, root):
                own = workdirs is not None and place.is_relative_to(workdirs.resolve())
                if not own and not place.is_relative_to(root):
                    raise SkillRefused(f"{skill.name}: {key} names {value}, which is outside of {root}")
                if self.rules.denied.hides(place, root):
                    raise SkillRefused(
                        f"{skill.name}: {key} names {value}, which may not be read: the permissions deny it"
                    )
                if key in FILE_KEYS:
                    whole[key] = str(place)
        return {**params, **whole}

    def _with_inner_path(self, skill: Skill, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return *params* with their ``path`` in full, relative to the root. Raises SkillRefused if it leads out."""
        params = self._with_inner_files(skill, params)
        named = params.get("path")
        if not isinstance(named, str) or not named.strip() or named == self.request.context.get("path"):
            return params
        text = named.removeprefix("file://")
        if "file:" in text.casefold() or (text != named and "://" in text):
            raise SkillRefused(f"{skill.name}: the path {named} is no path of a file")
        if "://" in text or "\0" in text:
            return params
        path, root = (self.root / Path(text).expanduser()).resolve(), self.root
        if self.rules.workdirs is not None and path.is_relative_to(self.rules.workdirs.resolve()):
            return params
        if not path.is_relative_to(root) or OWN_FOLDER in path.relative_to(root).parts:
            raise SkillRefused(f"{skill.name}: the path {named} is outside of {root}: name a file or folder in it")
        return {**params, "path": str(path)}


def places_named(key: str, value: str, root: Path) -> Iterator[Path]:
    """Yield what exists of the places that a skill may understand by a text: a path, or an address of a file.

    If *key* is that of a file, what does not exist in the root is looked for in the current folder of this process:
    skills start there.
    """
    text = value.strip()
    is_address = text.casefold().startswith("file://")
    while text.casefold().startswith("file://"):
        text = text[7:]
    meant = {text}
    if is_address:
        paths = (text, re.split("[?#]", text)[0], f"/{text.partition('/')[2]}")
        meant |= {unquote(re.sub(r"[\t\r\n]", "", path)) for path in (*paths, re.split("[?#]", paths[-1])[0])}
    for base in dict.fromkeys((root, Path.cwd()) if key in (*FILE_KEYS, "path") else (root,)):
        found: list[Path] = []
        for each in sorted(meant):
            with contextlib.suppress(OSError, RuntimeError, ValueError):  # long, an unknown user, a zero byte
                place = (base / Path(each).expanduser()).resolve()
                found += [place] if place.exists() else []
        if found:
            yield from found
            return


def texts_in(value: object) -> Iterator[str]:
    """Yield the texts in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        members: Iterable[object] = value.values() if isinstance(value, Mapping) else value
        for member in members:
            yield from texts_in(member)
