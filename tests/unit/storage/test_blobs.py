"""Blobs stay below their root, whatever session or file they are named after."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from fireswarm.contracts.swarm.task import TaskSpec
from fireswarm.errors import ConfigError, StoreError
from fireswarm.settings import load_settings
from fireswarm.storage.blobs import FsspecBlobs

pytestmark = pytest.mark.anyio

OUTSIDE = ("../x", "/etc/x", "s/../../x", "s/\0/x", "..")


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("kind", ["file", "memory"])
async def test_name_that_leads_out_of_the_root_is_refused(name: str, kind: str, tmp_path: Path) -> None:
    blobs = FsspecBlobs(str(tmp_path / "blobs") if kind == "file" else "memory://blobs")
    with pytest.raises(StoreError, match="is outside of"):
        await blobs.put(name, b"x")
    assert [file for _, _, files in os.walk(tmp_path) for file in files] == []


@pytest.mark.parametrize("session", ["../../x", "/etc", "a/b", "a\\b", "..", "a\nb", "__x__", "", "x" * 129])
def test_session_that_cannot_be_a_file_name_is_refused(session: str, tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="session_hash"):
        TaskSpec(objective="x", assigned_to="scout", session_hash=session)
    with pytest.raises(ConfigError, match="session"):
        load_settings(tmp_path, environment={}, overrides={"session": session})


@pytest.mark.parametrize("session", ["default", "garden 2026", "Büro", "a.b-c_d@e:f"])
def test_usual_session_names_are_valid(session: str, tmp_path: Path) -> None:
    assert TaskSpec(objective="x", assigned_to="scout", session_hash=session).session_hash == session
    assert load_settings(tmp_path, environment={}, overrides={"session": session}).session == session
