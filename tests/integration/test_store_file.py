"""Several commands on one embedded data file: a short one delays the next, a long one is named."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from fireswarm.errors import StoreUnavailable
from fireswarm.settings import load_settings
from fireswarm.swarm.opening import embedded_store
from fireswarm.swarm.opening.embedded_store import serving
from tests.support.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.anyio


async def test_command_waits_for_another_one_that_ends(tmp_path: Path) -> None:
    settings = load_settings(tmp_path, environment={})
    first = embedded_store.open_database(settings)
    opened = anyio.Event()

    async def second() -> None:
        async with serving(settings) as uri:
            assert uri == f"firelite://unix:{tmp_path}/.fireswarm/store.sock"
            opened.set()

    async with anyio.create_task_group() as group:
        group.start_soon(second)
        await anyio.lowlevel.checkpoint()
        assert not opened.is_set()
        first.close()
        with anyio.fail_after(PATIENCE_SECONDS):
            await opened.wait()


async def test_process_that_keeps_the_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded_store, "FILE_WAIT_SECONDS", 0.2)
    settings = load_settings(tmp_path, environment={})
    with embedded_store.open_database(settings), pytest.raises(StoreUnavailable, match="did not end within 0.2 s"):
        async with serving(settings):
            pass
