"""Seals on the records of a run: nobody else can write, change, reorder or exchange them, or take some from the middle.

Each record ends with an HMAC over it and over the seal before it. The key belongs to the user and is in the state
folder of the agent, which nothing that the agent runs can read.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import threading
from dataclasses import dataclass
from pathlib import Path

from fireswarm.contracts.base import encode_json
from fireswarm.errors import InvalidInput
from fireswarm.settings.run_folders import make_kept_folder, state_home

KEY_FILE = "key"
KEY_BYTES = 32
TASK_FILE = "task.json"
"""The task of a run: written before its first step, and not changed afterwards."""

_MARK = b',"seal":"'
_END = b'"}'


@dataclass(slots=True)
class Seal:
    """The chain of seals of one run."""

    key: bytes
    last: bytes

    @classmethod
    def of_run(cls, folder: Path) -> Seal:
        """Return the chain of the run in *folder*, which begins with its place and its task.

        Raises ConfigError and InvalidInput without a key.
        """
        task = folder / TASK_FILE
        digest = hashlib.sha256(task.read_bytes()).hexdigest() if task.is_file() else ""
        return cls(user_key(), encode_json([folder.parent.name, folder.name, digest]))

    def close(self, record: bytes) -> bytes:
        """Return a record, a JSON object that is not empty, with its seal as its last field."""
        self.last = self._over(record)
        return record[:-1] + _MARK + self.last + _END

    def open(self, line: bytes) -> bytes | None:
        """Return the record of a line; None if its seal is missing or wrong, and the chain stays where it was."""
        body, mark, seal = line.rpartition(_MARK)
        record = body + b"}"
        expected = self._over(record)
        if not mark or not hmac.compare_digest(seal, expected + _END):
            return None
        self.last = expected
        return record

    def _over(self, record: bytes) -> bytes:
        return hmac.new(self.key, self.last + b"\n" + record, hashlib.sha256).hexdigest().encode()


def user_key() -> bytes:
    """Return the key of this user; the first call makes it. Raises ConfigError and InvalidInput."""
    folder = state_home()
    make_kept_folder(folder)
    place = folder / KEY_FILE
    with contextlib.suppress(FileNotFoundError):
        return _check_key(place, place.read_bytes())
    made = folder / f"{KEY_FILE}.{os.getpid()}.{threading.get_ident()}"
    with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secrets.token_bytes(KEY_BYTES))
    try:
        with contextlib.suppress(FileExistsError):  # another process was first: its key counts
            os.link(made, place)
    finally:
        made.unlink()
    return _check_key(place, place.read_bytes())


def _check_key(place: Path, key: bytes) -> bytes:
    if len(key) != KEY_BYTES:
        raise InvalidInput(f"{place} is damaged: remove it. Runs that were sealed with it cannot be continued then")
    return key
