"""Loaded by the Python processes of a fleet under test, which have this folder on PYTHONPATH.

``CHAOS_FAULTS=RATE:FILE`` lets that share of commits fail, half of them after they were applied; each adds a byte to
the file. ``CHAOS_NEWER=1`` makes the fleet a newer version: documents have a higher schema version, and one more word.
A process with a shifted clock (``FAKETIME``) gets another way to sleep.
"""

from __future__ import annotations

import importlib.util
import os
import random
import select
import sys
import time
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

CLIENT = "google.cloud.firestore_v1.services.firestore.async_client"
TASK = "fireswarm.contracts.swarm.task"
NEWER = (
    ("SCHEMA_VERSION = 1\n", "SCHEMA_VERSION = 2\n"),
    ('    FAIL = "fail"\n', '    FAIL = "fail"\n    ASK = "ask"\n'),
)


class Loader(SourceFileLoader):
    """Loads a module from its changed source, and changes the loaded module."""

    def __init__(
        self, spec: ModuleSpec, words: Sequence[tuple[str, str]], change: Callable[[ModuleType], None]
    ) -> None:
        super().__init__(spec.name, str(spec.origin))
        self._words = words
        self._change = change

    def get_code(self, fullname: str) -> CodeType:
        source = self.get_source(fullname) or ""
        for old, new in self._words:
            assert source.count(old) == 1, f"{fullname} has no {old!r}"
            source = source.replace(old, new)
        return compile(source, self.path, "exec")

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        self._change(module)


class Finder(MetaPathFinder):
    """Finds the module *name* as before, with another loader."""

    def __init__(
        self, name: str, *words: tuple[str, str], change: Callable[[ModuleType], None] = lambda _: None
    ) -> None:
        self._name = name
        self._words = words
        self._change = change

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None:
            spec.loader = Loader(spec, self._words, self._change)
        return spec


def let_commits_fail(rate: float, count: str) -> Callable[[ModuleType], None]:
    """Return a change of the client's module after which commits fail at that rate."""

    def change(module: ModuleType) -> None:
        from google.api_core import exceptions

        client: Any = module.FirestoreAsyncClient
        commit, rng = client.commit, random.Random()
        os.register_at_fork(after_in_child=rng.seed)
        counting = os.open(count, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        faults = (exceptions.Cancelled, exceptions.ServiceUnavailable)

        async def failing(self: Any, *args: Any, **named: Any) -> Any:
            fails, applied, fault = rng.random() < rate, rng.random() < 0.5, rng.choice(faults)
            answer = await commit(self, *args, **named) if applied or not fails else None
            if fails:
                os.write(counting, b".")
                raise fault(f"injected, {'after' if applied else 'before'} the commit was applied")
            return answer

        client.commit = failing

    return change


def sleep_by_select(seconds: float) -> None:
    """Sleep as `time.sleep` does, whose call the library that shifts the clock answers with EINVAL."""
    select.select((), (), (), seconds)


if os.environ.get("FAKETIME"):
    time.sleep = sleep_by_select
if faults := os.environ.get("CHAOS_FAULTS"):
    rate, _, file = faults.partition(":")
    sys.meta_path.insert(0, Finder(CLIENT, change=let_commits_fail(float(rate), file)))
if os.environ.get("CHAOS_NEWER"):
    sys.meta_path.insert(0, Finder(TASK, *NEWER))
