"""Run a built node with a recorder in the place of the network, confined and without network."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from fireswarm import SkillRequest, count_noun, errors, pipelines, read_regular_file, read_without_links, truncate

RECORDER = Path(__file__).parents[1] / "recorder"
MAX_BYTES = 50_000_000
"""Maximum size of a recording as the recorder writes it."""

MAX_SOURCE_BYTES = 900_000
MAX_RECORDING_BYTES = 6_000_000
"""What a run keeps of a recording: a patch that contains it has to fit into a file of the run too."""

MAX_SOURCES = 120
"""Files of the package that are kept: those of its newest version first."""

KEPT = ("PATH", "LANG", "HOME")


def record(carried: pipelines.Carried, file: Path, near: Path, request: SkillRequest) -> str:
    """Write ``recording.json`` and the files of the package that ran. Returns a summary; raises InvalidInput.

    A transpiler is looked for in the folder *near* and above it.
    """
    root, program = pipelines.package_root(file), pipelines.find_node()
    place = Path(tempfile.mkdtemp(prefix="recorder-", dir=carried.workdir))  # a link that the node leaves is in it
    output = place / "recorded.json"
    readable = [root, RECORDER.resolve()]
    command = [program, "--no-warnings", str(RECORDER / "record.js"), str(root), str(file.relative_to(root))]
    command.append(str(output))
    if file.suffix == ".ts":
        transpiler = _transpiler(file, near, program)
        readable.append(transpiler.parents[1] if transpiler.parent.name.startswith("@") else transpiler.parent)
        command.append(str(transpiler))
    view = pipelines.View(place, writable=True, readable=tuple(readable), protects=False, follow=False)
    environment = {name: value for name, value in os.environ.items() if name in KEPT}
    seconds, confinement = request.limits.default_timeout_seconds, request.limits.confinement
    code, told = pipelines.run_confined(command, view, environment, seconds, confinement=confinement)
    if not output.is_file():
        raise errors.InvalidInput(f"{file.name} could not be run (exit code {code}): {truncate(told.strip()[-500:])}")
    node = _read_node(output, file.name)
    for name in sorted(node["loaded"], key=lambda name: -pipelines.folder_version(name))[:MAX_SOURCES]:
        carried.write(f"{pipelines.SOURCES}{name}", _read_source(root, name))
    _write(carried, node)
    operations = node["operations"]
    sending = sum(any(case["requests"] for case in operation["cases"]) for operation in operations)
    missing = f"; not installed: {', '.join(node['missing'])}" if node["missing"] else ""
    return f"recorded {sending:,} of {count_noun(len(operations), 'operation')}{missing}"


def _transpiler(file: Path, near: Path, program: str) -> Path:
    """Return the folder of a transpiler. Raises InvalidInput if there is none."""
    found = pipelines.find_transpiler(near, Path(program))
    if found is None:
        raise errors.InvalidInput(
            f"{file.name} is TypeScript, and no transpiler is installed: `npm install esbuild` in {near}, or "
            "`npm install -g esbuild`; @swc/core and typescript do as well; or build the package. "
            "Then `swarm retry` this task"
        )
    return found


def _read_node(output: Path, name: str) -> dict[str, Any]:
    """Return the first node of a recording. The node's code could have written it. Raises InvalidInput."""
    try:
        content = read_regular_file(output, MAX_BYTES, follow=False)
        recorded = json.loads(content)
        if b"\\ud" in content.lower():  # half of a character, which no file can hold
            recorded = json.loads(json.dumps(recorded, ensure_ascii=False).encode("utf-8", "replace"))
        if not recorded.get("nodes"):
            why = recorded.get("error") or "it exports no class with a description"
            raise errors.InvalidInput(f"{name} is no node that can be run: {truncate(str(why))}")
        pipelines.recorded_node(recorded["nodes"][0])
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise errors.InvalidInput(f"the recording of {name} cannot be read: {truncate(str(error))}") from error
    output.unlink()
    return recorded["nodes"][0]


def _read_source(root: Path, name: str) -> str:
    """Return the text of a file of the package. Raises InvalidInput for a name that leads out of it."""
    place = (root / name).resolve()
    if not place.is_relative_to(root):
        raise errors.InvalidInput(f"the recording names {name}, which is no file of the package")
    try:
        content = read_without_links(place, MAX_SOURCE_BYTES)
    except OSError as error:
        raise errors.InvalidInput(f"{name} cannot be copied into the bundle: {error.strerror}") from error
    return content.decode("utf-8", "replace").replace("\r\n", "\n")


def _write(carried: pipelines.Carried, node: dict[str, Any]) -> None:
    """Write the recording; if it is too large, with fewer further cases of each operation, which it says."""
    for most in (100, 12, 6, 3):
        for operation in node["operations"]:
            if len(operation["cases"]) > most:
                operation["left_out"] = operation.get("left_out", 0) + len(operation["cases"]) - most
                operation["cases"] = operation["cases"][:most]
        text = json.dumps(node, indent=1, ensure_ascii=False)
        if len(text.encode()) < MAX_RECORDING_BYTES:
            break
    carried.write(pipelines.RECORDING, f"{text}\n")
