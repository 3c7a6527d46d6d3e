"""Read the contract and the sample of a CSV file once: later steps keep to these."""

from __future__ import annotations

import errno
import hashlib
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from fireswarm import SkillRequest, SkillResult, count_noun, pipelines, read_regular_file

from .contract import BadContract, load_contract

MAX_BYTES = {"contract": 500_000, "sample": 5_000_000, "data": 20_000_000}
"""The sample becomes a file of the tests; each row of the data is read once."""


def run(request: SkillRequest) -> SkillResult:
    """Return ``request_snapshot.json``, with the hashes of the files, and ``contract.json``."""
    given = {**request.context, **request.answers}
    try:
        files = {key: _read(key, str(given[key])) for key in MAX_BYTES if given.get(key)}
        path, content = files["contract"]
        contract = load_contract(content, path.name)
    except BadContract as error:
        return SkillResult.failure(str(error))
    carried = pipelines.Carried.of(request)
    snapshot: dict[str, Any] = {
        "correlation_id": str(given.get("correlation_id") or request.task_id),
        "objective": str(given.get("objective") or request.objective),
        "requested_at": request.now.isoformat(timespec="seconds"),
        "node_name": contract.name,
    }
    for key, (path, content) in files.items():
        digest = hashlib.sha256(content).hexdigest()
        snapshot[key] = {"path": str(path), "name": path.name, "bytes": len(content), "sha256": digest}
    carried.write_json("request_snapshot.json", snapshot, "the request as it was submitted; it never changes")
    carried.write_json(pipelines.CONTRACT, contract.model_dump(mode="json"))
    told = f"{contract.name}: {count_noun(len(contract.columns), 'column')}"
    return SkillResult(summary=told, artifacts=carried.artifacts(), confidence=1.0)


def _read(key: str, named: str) -> tuple[Path, bytes]:
    """Return the place and the content of a file. Raises BadContract."""
    place = Path(unquote(urlsplit(named).path)) if named.startswith("file://") else Path(named).expanduser()
    try:
        return place.resolve(), read_regular_file(place, MAX_BYTES[key])
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise BadContract(f"{key} {named} has more than {MAX_BYTES[key]:,} bytes: give a part of it") from error
        raise BadContract(f"{key} {named} cannot be read ({error.strerror}): name a file by its path") from error
