"""Where the stand-alone agent keeps its runs, names in the folders of runs, and the creation of folders of state.

What a run needs in order to continue is in the user's state folder, where what the agent runs cannot reach it. The
folder ``logging.jsonl_dir`` of a project has only the logs, for people.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from functools import lru_cache
from pathlib import Path

from fireswarm.errors import ConfigError

RUN_ID = re.compile(r"^\d{8}-\d{6}-[0-9a-f]{8}$")
RUN_ID_GLOB = "-".join(("[0-9]" * 8, "[0-9]" * 6, "[0-9a-f]" * 8))
"""Glob with the same matches as RUN_ID, for programs that take globs."""

STATE_HOME = "XDG_STATE_HOME"
"""Environment variable that names another folder for the state of programs than ``~/.local/state``."""

MAX_NAME_CHARS = 40

CHATS_FOLDER = "chats"
SPEND_FILE = "spend.jsonl"
SWARMS_FILE = "swarms.jsonl"
NAMED_FILE = "named.jsonl"
"""List of the files and folders that a person named in settings or options, in the folder of the state."""

MAX_LINKS = 40
"""Most links on the way to a place, as the kernel follows them."""
IGNORE_FILE, IGNORED = ".gitignore", "*\n"
"""Name and content of the file that excludes a folder from git."""

STATE_FOLDER = ".fireswarm"
"""Folder of the store, the blobs, the logs and the work of a swarm, in the folder of its settings."""


def state_home() -> Path:
    """Return the folder in which the agent keeps its state for this user."""
    given = os.environ.get(STATE_HOME, "")
    try:
        base = Path(given) if given.startswith("/") else Path.home() / ".local" / "state"
    except RuntimeError:  # a user id without a home, as container runtimes set it
        base = Path("/.local/state")
    return base / "fireswarm"


DIGEST_CHARS = 40
"""Characters of a hash in the name of a folder: nobody finds another folder with the same ones."""


def kept_runs(root: Path) -> Path:
    """Return the folder in which the agent keeps the runs of the folder *root*, its chats and its spending.

    That of a version before 0.3, which has the first 12 characters only, gets its name first.
    """
    place = root.resolve()
    name = re.sub(r"[^A-Za-z0-9._-]", "_", place.name)[:MAX_NAME_CHARS].strip(".") or "root"
    digest = hashlib.sha256(os.fsencode(place)).hexdigest()
    kept, earlier = (state_home() / f"{name}-{digest[:length]}" for length in (DIGEST_CHARS, 12))
    if earlier.is_dir() and not kept.exists():
        with contextlib.suppress(OSError):  # another process was faster
            earlier.rename(kept)
    return kept


def make_private_folder(folder: Path) -> None:
    """Create a folder with its parents; only the user can enter new ones. Raises OSError."""
    for above in reversed((folder, *folder.parents)):
        if not above.is_dir():
            above.mkdir(0o700, exist_ok=True)


def make_kept_folder(folder: Path) -> None:
    """Create a folder of the agent's state, with its parents; new ones are private. Raises ConfigError."""
    try:
        make_private_folder(folder)
    except OSError as error:
        raise ConfigError(
            f"the agent cannot keep its runs in {folder}: {error.strerror}; set {STATE_HOME} to a folder that this "
            f"user can write to"
        ) from error


def add_swarm_folders(*folders: Path) -> None:
    """Remember folders in which swarms of this user keep their stores, so that nothing that agents run sees them."""
    _add_places(SWARMS_FILE, {str(folder.resolve()) for folder in folders})


def swarm_folders() -> list[Path]:
    """Return the folders from `add_swarm_folders`. Damaged lines are left out."""
    return [Path(place) for place in _read_places(SWARMS_FILE)]


def add_named_places(*places: Path) -> None:
    """Remember files and folders that decide what runs, so that nothing that agents run changes them.

    A person named them in an option or in settings: a settings file, a script, a folder of skills.
    """
    found = {str(each) for place in places for each in places_on(place.absolute())}
    _named.update(found)
    _add_places(NAMED_FILE, found)


def named_places() -> list[Path]:
    """Return the places from `add_named_places`, and the links on the way to them. Damaged lines are left out."""
    return [Path(place) for place in dict.fromkeys((*_read_places(NAMED_FILE), *_named))]


_named: set[str] = set()
"""Those that this process added, which may have no folder of state."""


def places_on(path: Path) -> list[Path]:
    """Return the links on the way of an absolute *path*, and the place that it leads to, which need not exist."""
    links: list[Path] = []
    here, left = Path(path.anchor), list(reversed(path.parts[1:]))
    while left:
        place, part = here / left[-1], left.pop()
        if part == "..":
            here = here.parent
        elif not place.is_symlink() or len(links) >= MAX_LINKS:
            here = place
        else:
            links.append(place)
            target = place.readlink()
            here = Path(target.anchor) if target.is_absolute() else here
            left += reversed(target.parts[1:] if target.is_absolute() else target.parts)
    return [*links, here]


def _add_places(name: str, places: set[str]) -> None:
    """Add what is new to a list in the folder of the state."""
    if not (new := places.difference(_read_places(name))):
        return
    with contextlib.suppress(OSError, ConfigError):  # a swarm also runs where no state can be kept
        make_kept_folder(state_home())
        number = os.open(state_home() / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(number, "wb") as file:
            file.write(b"".join(json.dumps(place).encode() + b"\n" for place in sorted(new)))


def _read_places(name: str) -> tuple[str, ...]:
    """Return the places of a list in the folder of the state. It only grows."""
    path = state_home() / name
    try:
        return _parse_places(path, path.stat().st_size)
    except OSError:
        return ()


@lru_cache(maxsize=8)
def _parse_places(path: Path, _size: int) -> tuple[str, ...]:
    found: list[str] = []
    for line in path.read_bytes().splitlines():
        with contextlib.suppress(ValueError, RecursionError):
            place: object = json.loads(line)
            found += [place] if isinstance(place, str) else []
    return tuple(found)


def make_state_folder(folder: Path) -> None:
    """Create a folder and its parents. A new STATE_FOLDER above it, or it itself, is private and ignored by git."""
    for above in reversed((folder, *folder.parents)):
        if above.name == STATE_FOLDER:
            _make_ignored(above, 0o700)
    folder.mkdir(parents=True, exist_ok=True)


def make_runs_folder(folder: Path) -> None:
    """Create the folder of all runs, ignored by git. An existing folder is not changed."""
    _make_ignored(folder, 0o777)


def _make_ignored(folder: Path, mode: int) -> None:
    """Create a folder that git ignores. In an existing one, what a person removed or wrote is not changed."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir(mode)
    except FileExistsError:
        return
    (folder / IGNORE_FILE).write_text(IGNORED, encoding="utf-8")
