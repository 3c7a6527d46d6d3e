"""Stores of conversations that packages bring are found by their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fireswarm.clocks import VirtualClock
from fireswarm.errors import ConfigError
from fireswarm.settings import Settings, load_settings
from fireswarm.swarm.opening.open_conversations import open_installed


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings that name the store ``drawer``, of which no package is installed unless a test adds one."""
    return load_settings(tmp_path, environment={"STATE_STORE_BACKEND": "drawer", "DATABASE_URL": "drawer://2"})


def test_store_that_is_not_installed_is_refused_with_its_package(settings: Settings) -> None:
    with pytest.raises(ConfigError, match=r"is drawer, .* pip install fireswarm-drawer, or use one of firestore"):
        open_installed(settings, VirtualClock())


def test_store_of_a_package_gets_the_url_and_the_clock(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "site" / "drawer_store-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: drawer-store\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[fireswarm.conversation_stores]\ndrawer = drawer_store:open_drawer\n")
    (info.parent / "drawer_store.py").write_text("def open_drawer(url, clock, clean):\n    return url, clock, clean\n")
    monkeypatch.syspath_prepend(str(info.parent))
    clock = VirtualClock()
    opened: Any = open_installed(settings, clock)
    assert opened[:2] == ("drawer://2", clock)


@pytest.mark.parametrize("name", ["", "Postgres", "a b", "../x"])
def test_name_that_no_store_can_have_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"state\.backend"):
        load_settings(tmp_path, environment={}, overrides={"state.backend": name})
