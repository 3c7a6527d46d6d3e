"""Execute the Dockerfile without a container engine: its steps run in a folder that stands for the image.

Absolute paths of the image (``/opt``, ``/app``, ``/data``, ``/build``) are prefixed with that folder. ``SUBSTITUTES``
lists the steps that are replaced, and by what. Everything else in the Dockerfile runs as it is written.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from importlib.metadata import distribution
from importlib.util import cache_from_source
from pathlib import Path

from packaging.requirements import Requirement

STEP_SECONDS = 120
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
IMAGE_PATHS = re.compile(r"(?<![\w./-])/(opt|app|data|build)(?![\w-])")


@dataclass(frozen=True, slots=True)
class Stage:
    """One FROM of the Dockerfile with its instructions, as (keyword, text)."""

    name: str
    base: str
    instructions: tuple[tuple[str, str], ...]

    def last(self, keyword: str) -> str:
        """Return the text of the last instruction of this keyword."""
        return [text for name, text in self.instructions if name == keyword][-1]


def parse(text: str) -> list[Stage]:
    """Parse a Dockerfile without heredocs and parser directives."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    stages: list[Stage] = []
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        keyword, rest = line.split(None, 1)
        if keyword == "FROM":
            words = rest.split()
            stages.append(Stage(words[2] if len(words) == 3 else "", words[0], ()))
        else:
            stage = stages.pop()
            stages.append(Stage(stage.name, stage.base, (*stage.instructions, (keyword, " ".join(rest.split())))))
    return stages


def pins(lock: Path) -> list[Requirement]:
    """Return the pins of a lock file, without their hashes."""
    lines = lock.read_text(encoding="utf-8").splitlines()
    return [Requirement(line.rstrip("\\ ")) for line in lines if re.match(r"[a-z0-9]", line)]


@dataclass
class Image:
    """A folder that stands for the file system of an image while its stages are executed."""

    context: Path
    root: Path
    environment: dict[str, str] = field(default_factory=dict[str, str])
    workdir: str = "/"
    substituted: list[str] = field(default_factory=list[str])

    def path(self, inside: str) -> Path:
        """Return where an absolute path of the image lies on this machine."""
        return self.root / inside.lstrip("/")

    def translated(self, text: str) -> str:
        """Return *text* with the image's absolute paths replaced."""
        return IMAGE_PATHS.sub(lambda match: str(self.path(match[0])), text)

    def build(self, stages: list[Stage]) -> None:
        """Execute all stages; the folder then holds the last one."""
        for stage in stages:
            earlier = self.root.with_name("earlier")
            if self.root.exists():
                self.root.rename(earlier)
            python = self.path("/usr/local/bin/python")
            python.parent.mkdir(parents=True)
            python.write_text(f'#!/bin/sh\nexec {shlex.quote(os.path.realpath(sys.executable))} "$@"\n')
            python.chmod(0o755)
            self.environment, self.workdir = {"PATH": f"{self.path('/usr/local/bin')}:{SYSTEM_PATH}"}, "/"
            for keyword, text in stage.instructions:
                step = STEPS.get(keyword)
                if step is not None:
                    step(self, text)
            shutil.rmtree(earlier, ignore_errors=True)

    def run(self, command: str) -> None:
        """Execute one RUN instruction with the stage's environment, or its substitute."""
        for pattern, (reason, substitute) in SUBSTITUTES.items():
            if re.match(pattern, command):
                self.substituted.append(reason)
                substitute(self)
                return
        scratch = self.root.with_name("tmp")
        scratch.mkdir(exist_ok=True)
        environment = {"HOME": str(scratch), "TMPDIR": str(scratch), **self.environment}
        shell = ["/bin/sh", "-ec", self.translated(command)]
        ended = subprocess.run(
            shell, cwd=self.path(self.workdir), env=environment, capture_output=True, text=True, timeout=STEP_SECONDS
        )
        assert ended.returncode == 0, f"RUN {command}\n{ended.stdout}{ended.stderr}"

    def copy(self, text: str) -> None:
        """Execute one COPY instruction, from the build context or from the stage before."""
        *sources, target = text.split()
        stage = sources.pop(0) if sources[0].startswith("--from=") else ""
        place = self.path(str(Path(self.workdir, target)))
        for source in sources:
            if stage:  # moved, so that its absolute paths stay true as in the image
                place.parent.mkdir(parents=True, exist_ok=True)
                self.root.with_name("earlier").joinpath(source.lstrip("/")).rename(place)
            else:
                self._copy_from_context(source, place, into=target.endswith("/"))

    def _copy_from_context(self, source: str, place: Path, *, into: bool) -> None:
        assert not ignored(self.context, source), f"COPY {source}: .dockerignore keeps it from the engine"
        if (self.context / source).is_dir():
            shutil.copytree(self.context / source, place, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            (place if into else place.parent).mkdir(parents=True, exist_ok=True)
            shutil.copy2(self.context / source, place)

    def env(self, text: str) -> None:
        """Execute one ENV instruction."""
        for item in shlex.split(text):
            name, _, value = item.partition("=")
            for known, content in self.environment.items():
                value = value.replace(f"${known}", content)
            self.environment[name] = self.translated(value)

    def work_in(self, text: str) -> None:
        """Execute one WORKDIR instruction."""
        self.workdir = text
        self.path(text).mkdir(parents=True, exist_ok=True)

    def link_locked_packages(self) -> None:
        """Put the packages of requirements-run.lock into the image's environment, out of the running one.

        Hard links where possible. Nothing but the lock's packages, each in the lock's version.
        """
        [site] = self.path("/opt/fireswarm/lib").glob("python*/site-packages")
        for pin in pins(self.path(self.workdir) / "requirements-run.lock"):
            if pin.marker is None or pin.marker.evaluate():
                installed = distribution(pin.name)
                assert pin.specifier.contains(installed.version), f"{pin}: {installed.version} is installed"
                for file in installed.files or ():
                    if ".." not in file.parts:
                        _link(Path(str(installed.locate_file(file))), site / file)

    def give_away(self) -> None:
        """Execute the image's chown where this process may."""
        if os.geteuid() == 0:
            for folder in ("/data/store", "/data/blobs"):
                os.chown(self.path(folder), *(int(part) for part in USER.split(":")))


USER = "10001:10001"

SUBSTITUTES: Mapping[str, tuple[str, Callable[[Image], None]]] = {
    r"\S+/pip install .*--requirement requirements-run\.lock$": (
        "packages of requirements-run.lock are linked from the running environment, not downloaded",
        Image.link_locked_packages,
    ),
    r"apt-get ": ("system packages are not installed", lambda image: None),
    r"useradd ": ("no user is created: the number of USER is used", lambda image: None),
    r"chown ": ("chown takes effect only if the tests run as root", Image.give_away),
}
"""Steps that are not executed as written: pattern of the command, what is done instead."""

STEPS: Mapping[str, Callable[[Image, str], None]] = {
    "RUN": Image.run,
    "COPY": Image.copy,
    "ENV": Image.env,
    "WORKDIR": Image.work_in,
}


def ignored(context: Path, name: str) -> bool:
    """Return True if .dockerignore excludes a file or folder at the top of the context: the last match decides."""
    excluded = False
    for line in (context / ".dockerignore").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#") and fnmatch(name, line.removeprefix("!")):
            excluded = not line.startswith("!")
    return excluded


def exec_form(text: str) -> list[str]:
    """Return the words of an ENTRYPOINT or CMD in exec form; ValueError for the shell form."""
    return json.loads(text)


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    pairs = [(source, target)]
    if source.suffix == ".py":  # with its bytecode: a role starts as fast as from a venv that was used before
        pairs.append((Path(cache_from_source(str(source))), Path(cache_from_source(str(target)))))
    for old, new in pairs:
        if old.is_file():
            new.parent.mkdir(exist_ok=True)
            try:
                os.link(old, new)
            except OSError:
                shutil.copy2(old, new)
