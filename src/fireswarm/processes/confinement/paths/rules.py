"""What a command may open where it keeps the files of the machine at their paths, and the private folders it gets."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fireswarm.processes.confinement.bubblewrap import Launch
from fireswarm.processes.confinement.paths.names import CALLERS_PATH


@dataclass(frozen=True, slots=True, kw_only=True)
class PathRules:
    """What a command may open. It starts in ``folder``.

    ``readable`` and ``writable`` are folders and files with all that is below them; ``listed`` are folders whose
    names it may list. Those in ``held`` are refused if a part of their path has become a link. If it ``changes`` its
    ``workspace``, it may also make and change other names there than those of `names`, ``kept`` and ``hidden``; with
    ``watches_reading``, it reads them too, even if they are not ``readable``. ``owner`` are the user and the group
    that it becomes; ``capabilities`` the bits of the privileges of root that it keeps. ``files`` are contents by
    paths, and ``places`` are folders by paths, that stand in its words and in its environment for the places where
    they are.
    """

    folder: Path
    readable: Sequence[Path | str] = ()
    writable: Sequence[Path | str] = ()
    listed: Sequence[Path | str] = ()
    workspace: Path | None = None
    changes: bool = False
    watches_reading: bool = False
    hidden: Sequence[Path] = ()
    held: Sequence[Path] = ()
    kept: Sequence[Path] = ()
    network: bool = False
    strict: bool = False
    owner: tuple[int, int] | None = None
    capabilities: int = 0
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    places: Mapping[str, Path] = field(default_factory=dict[str, Path])


@dataclass(frozen=True, slots=True)
class PrivateFolders:
    """The ``home`` and ``tmp`` of a command in ``folder``; ``places`` are the real places of paths in its words."""

    rules: PathRules
    folder: Path
    places: Mapping[str, str]

    def environment(self, launch: Launch, given: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of the command: these folders, and of a PATH the folders that it may read."""
        own = {"TMPDIR": str(self.folder / "tmp"), **({} if self.rules.strict else {"HOME": str(self.folder / "home")})}
        variables = {name: launch.word(value) for name, value in given.items()} | own
        for name in {"PATH", CALLERS_PATH} & variables.keys():
            variables[name] = _visible_part(variables[name], self.rules)
        return variables


@contextmanager
def private_folders(rules: PathRules) -> Generator[PrivateFolders]:
    """Make the private folders of a command and its files, and remove them at the end of the block."""
    with tempfile.TemporaryDirectory(prefix="fireswarm-command-", ignore_cleanup_errors=True) as temporary:
        private = Path(temporary).resolve()
        places = {path: str(place) for path, place in rules.places.items()}
        yield PrivateFolders(rules, private, {**places, **_make_files(private, rules)})


def _visible_part(path: str, rules: PathRules) -> str:
    """Return the folders of a PATH that the command may read: a shell stops at the first program it may not start."""
    seen = [os.path.realpath(place) for place in (*rules.readable, *rules.writable)]
    listed = [(folder, os.path.realpath(folder)) for folder in path.split(os.pathsep) if folder.startswith("/")]
    kept = [folder for folder, real in listed if any(f"{real}/".startswith(f"{place}/") for place in seen)]
    return os.pathsep.join(kept)


def _make_files(private: Path, rules: PathRules) -> dict[str, str]:
    """Make the folders of the command, and its files; returns where they are."""
    made = [private / name for name in ("home", "tmp", "files")]
    for folder in made:
        folder.mkdir(0o700)
    found: dict[str, str] = {}
    for number, (path, content) in enumerate(rules.files.items()):
        place = made[-1] / f"{number}-{Path(path).name}"
        place.write_bytes(content)
        made.append(place)
        found[path] = str(place)
    if rules.owner is not None:
        for place in (private, *made):
            os.chown(place, *rules.owner)
    return found
