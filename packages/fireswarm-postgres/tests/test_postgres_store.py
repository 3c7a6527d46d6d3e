"""What only this store does: it is found by its name, and says what to do about the database. Its wheel is whole."""

from __future__ import annotations

import zipfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hatchling.builders.wheel import WheelBuilder

from fireswarm.cli.shared.options import console
from fireswarm.cli.swarm.conversations import migrate
from fireswarm.clocks import VirtualClock
from fireswarm.contracts.ports import MigratedStore
from fireswarm.errors import ConfigError, StoreUnavailable
from fireswarm.settings import Settings, load_settings
from fireswarm.swarm.opening.open_conversations import open_installed
from fireswarm_postgres.store import PostgresConversations
from tests.support.postgres import postgres

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A database without tables."""
    with postgres() as url:
        yield url


def settings_with(folder: Path, **state: Any) -> Settings:
    return load_settings(folder, environment={}, overrides={f"state.{name}": value for name, value in state.items()})


@pytest.fixture
async def conversations(tmp_path: Path, url: str) -> AsyncIterator[PostgresConversations]:
    store = open_installed(settings_with(tmp_path, backend="postgres", database_url=url), VirtualClock())
    assert isinstance(store, PostgresConversations) and isinstance(store, MigratedStore)
    yield store
    await store.close()


async def test_missing_tables_are_made_once(conversations: PostgresConversations) -> None:
    with pytest.raises(ConfigError, match="run `swarm state migrate`"):
        await conversations.load("talk-1")
    assert [await conversations.migrate(), await conversations.migrate()] == [3, 0]
    assert await conversations.load("talk-1") is None


def test_command_makes_the_tables(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATE_STORE_BACKEND", "postgres")
    monkeypatch.setenv("DATABASE_URL", url)
    with console.capture() as printed:
        migrate(tmp_path)
        migrate(tmp_path)
    assert printed.get().splitlines()[-1] == "nothing to do: the tables are up to date"


def test_database_that_is_not_named_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="set DATABASE_URL"):
        open_installed(settings_with(tmp_path, backend="postgres"), VirtualClock())


async def test_database_that_does_not_answer_is_unavailable(tmp_path: Path) -> None:
    settings = settings_with(tmp_path, backend="postgres", database_url="postgresql://nobody@127.0.0.1:1/none")
    with pytest.raises(StoreUnavailable, match="the conversation database is unavailable"):
        await open_installed(settings, VirtualClock()).load("talk-1")


def test_wheel_has_the_store_its_entry_point_types_and_the_license(tmp_path: Path) -> None:
    project = Path(__file__).resolve().parents[1]
    [built] = WheelBuilder(str(project)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(built) as wheel:
        info = "fireswarm_postgres-0.1.0.dist-info"
        entry_points = wheel.read(f"{info}/entry_points.txt").decode()
        assert {"fireswarm_postgres/store.py", "fireswarm_postgres/py.typed", f"{info}/licenses/LICENSE"} <= set(
            wheel.namelist()
        )
    assert "[fireswarm.conversation_stores]\npostgres = fireswarm_postgres.store:open_conversations" in entry_points
