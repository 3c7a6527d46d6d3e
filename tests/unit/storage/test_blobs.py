"""Blobs stay below their root, whatever session or file they are named after."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from fireswarm.contracts.swarm.task import TaskSpec
from fireswarm.errors import ConfigError, NotFound, StoreError
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


ELSEWHERE = (
    "file://{0}", "local://{0}", "{0}", "simplecache::local://{0}", "simplecache::file://{0}", "FILE://{0}", "file:{0}",
    "zip://x::{0}", "http://127.0.0.1:9/{0}", "memory://other{0}", "file://{1}/../{2}", "file://{1}/link", "file://\0",
    "memory://blobs/../other", "dir::file://{0}", "blockcache::file://{0}", "{1}/../{2}", "", "data:,x",
)  # fmt: skip


@pytest.mark.parametrize("uri", ELSEWHERE)
@pytest.mark.parametrize("kind", ["file", "memory"])
async def test_only_files_below_the_root_are_read(uri: str, kind: str, tmp_path: Path) -> None:
    """A document's URI is what code or a model from elsewhere wrote."""
    base, secret = tmp_path / "blobs", tmp_path / "secret"
    blobs = FsspecBlobs(str(base) if kind == "file" else "memory://blobs")
    secret.write_text("a secret")
    base.mkdir(exist_ok=True)
    (base / "link").symlink_to(secret)
    named = uri.format(secret, base, secret.name)
    for read in (blobs.get, blobs.size, blobs.local_path):
        with pytest.raises((NotFound, StoreError)):
            await read(named)
    assert not blobs.holds(named, "")


async def test_copies_of_a_bucket_are_in_a_private_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of a known name in a shared temporary folder could hold what another user put there."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    blobs = FsspecBlobs("memory://private")
    uri = await blobs.put("s/x.txt", b"x")
    place = await blobs.local_path(uri)
    assert place.read_bytes() == b"x" and place == await blobs.local_path(uri)
    folder = tmp_path / place.relative_to(tmp_path).parts[0]
    assert folder.stat().st_mode & 0o077 == 0
    other = await FsspecBlobs("memory://private").local_path(uri)
    assert folder not in other.parents


async def test_a_person_names_a_file_of_the_machine(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("a,b\n")
    blobs = FsspecBlobs(str(tmp_path / "blobs"))
    uri = (tmp_path / "own.csv").as_uri()
    assert (await blobs.get(uri, anywhere=True), await blobs.size(uri, anywhere=True)) == (b"a,b\n", 4)
    with pytest.raises(NotFound):
        await blobs.get(f"simplecache::{uri}", anywhere=True)


async def test_named_file_may_have_spaces_and_other_letters(tmp_path: Path) -> None:
    (tmp_path / "Büro Ö 100%25.csv").write_text("a,b\n")
    blobs = FsspecBlobs(str(tmp_path / "blobs"))
    for uri in ((tmp_path / "Büro Ö 100%25.csv").as_uri(), f"file://{tmp_path}/Büro Ö 100%25.csv"):
        assert (await blobs.get(uri, anywhere=True), await blobs.size(uri, anywhere=True)) == (b"a,b\n", 4)


async def test_link_in_the_place_of_a_named_file_is_not_followed(tmp_path: Path) -> None:
    """A command may exchange the file, or a folder above it, after a person named it."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "own.csv").write_text("sesame")
    work = tmp_path / "work"
    work.mkdir()
    (work / "own.csv").symlink_to(tmp_path / "secret" / "own.csv")
    (work / "data").symlink_to(tmp_path / "secret")
    blobs = FsspecBlobs(str(tmp_path / "blobs"))
    for name in ("own.csv", "data/own.csv"):
        with pytest.raises(StoreError, match="without links"):
            await blobs.get(f"file://{work}/{name}", anywhere=True)
