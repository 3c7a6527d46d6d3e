"""Gate and inputs of the pipeline that makes a validator of CSV files, which `pipelines/csv-contract.yaml` names."""

from __future__ import annotations

import hashlib
from pathlib import Path

from fireswarm.contracts.regular_file import read_regular_file
from fireswarm.errors import InvalidInput
from fireswarm.pipelines.files import PROJECT, Carried
from fireswarm.pipelines.gates import SNAPSHOT, StepFiles, gate

CONTRACT = "contract.json"


@gate("same-contract")
def check_contract(files: StepFiles) -> list[str]:
    """Return a fault if the validator has another contract than the one that was checked."""
    after, made = files.after, f"{PROJECT}{CONTRACT}"
    if made in after and CONTRACT in after and after.json(made) == after.json(CONTRACT):
        return []
    return [f"{made} is not the contract of the run, {CONTRACT}"]


def read_unchanged(files: Carried, key: str) -> bytes:
    """Return the content of a file that the snapshot names. Raises InvalidInput if it is gone or has changed."""
    named = files.json(SNAPSHOT)[key]
    try:
        content = read_regular_file(Path(named["path"]), named["bytes"])
    except OSError as error:
        raise InvalidInput(f"{named['path']} cannot be read any more ({error}): run the pipeline again") from error
    if hashlib.sha256(content).hexdigest() != named["sha256"]:
        raise InvalidInput(f"{named['path']} was changed during the run: run the pipeline again")
    return content
