"""Data files that are damaged, and disks that are full, when the database is opened."""

from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from firelite.database import Database
from firelite.errors import CorruptDataFile
from firelite.wire.inprocess import connect

PATIENCE_SECONDS = 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.db"


DAMAGES = ["header", "page", "blob", "not sqlite", "another program's", "future version", "twice"]


async def fill(path: Path) -> None:
    with Database.open(path) as db:
        client = connect(db)
        for number in range(200):
            await client.document(f"c/{number}").set({"n": number, "x": "marker" * 50})


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_file_is_refused_by_name_and_left_unchanged(path: Path, damage: str) -> None:
    asyncio.run(fill(path))
    spoil(path, damage)
    before = path.read_bytes()
    with pytest.raises(CorruptDataFile, match="restore") as refused:
        Database.open(path)
    assert refused.value.path == path
    assert path.read_bytes() == before
    with pytest.raises(CorruptDataFile):  # and the lock was given back
        Database.open(path)


def test_file_cut_off_anywhere_is_refused_and_the_lock_released(path: Path) -> None:
    asyncio.run(fill(path))
    content = path.read_bytes()
    for size in (0, 1, 99, 100, *range(1024, len(content), 1024)):
        path.write_bytes(content[:size])
        for _ in range(2):  # the second time, the lock would be held
            with pytest.raises(CorruptDataFile):
                Database.open(path)
    path.write_bytes(content)
    with Database.open(path) as db:
        assert db.store.live == 200


@pytest.mark.parametrize("seed", range(40))
def test_random_damage_is_refused_or_harmless(path: Path, seed: int) -> None:
    asyncio.run(fill(path))
    content = bytearray(path.read_bytes())
    rng = random.Random(seed)
    at = rng.randrange(len(content) - 300)
    content[at : at + rng.choice((1, 300))] = rng.randbytes(300)
    path.write_bytes(content)
    try:
        with Database.open(path) as db:
            assert db.store.live == 200
    except CorruptDataFile:
        with pytest.raises(CorruptDataFile):
            Database.open(path)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE documents SET name = 'nothing' WHERE row = 3",
        "UPDATE documents SET name = name || 'x' WHERE row = 3",
        "UPDATE documents SET name = x'ff' WHERE row = 3",
        "UPDATE documents SET update_us = update_us * 1000 WHERE row = 3",
        "UPDATE documents SET create_us = 'yesterday' WHERE row = 3",
        "UPDATE documents SET data = 5 WHERE row = 3",
        "UPDATE meta SET value = 'never' WHERE key = 'last_commit_us'",
        "DELETE FROM meta",
        "DROP TABLE meta",
        "DROP TABLE documents",
    ],
)
def test_row_with_impossible_content_is_refused(path: Path, statement: str) -> None:
    asyncio.run(fill(path))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()
    for _ in range(2):
        with pytest.raises(CorruptDataFile):
            Database.open(path)


FULL_DISK = """
mount -t tmpfs -o size=1m tmpfs {folder} && cd {folder} || exit 77
head -c {filled} /dev/zero > filled
timeout {seconds} {python} -m firelite serve --data data.db; echo "ended with $?"
"""


@pytest.mark.parametrize("free", [0, 4096, 8192, 40_960])
def test_start_on_a_full_disk_names_the_disk(tmp_path: Path, free: int) -> None:
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare, to mount a small disk")
    script = FULL_DISK.format(
        folder=tmp_path, filled=1024 * 1024 - free, python=sys.executable, seconds=PATIENCE_SECONDS // 2
    )
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    if "ended with" not in done.stdout:
        pytest.skip(f"cannot mount a small disk here: {done.stderr}")
    assert "ended with 1" in done.stdout
    assert f"The disk that holds {tmp_path / 'data.db'} is full" in done.stderr
    assert "Traceback" not in done.stderr


def spoil(path: Path, damage: str) -> None:
    content = bytearray(path.read_bytes())
    if damage == "header":
        content[:16] = b"x" * 16
    elif damage == "page":
        content[4096:8192] = b"\xff" * 4096
    elif damage == "blob":
        at = content.index(b"markermarker")
        content[at : at + 6] = b"MARKER"
    elif damage == "not sqlite":
        content = bytearray(b"no database at all" * 1000)
    path.write_bytes(content)
    statements = {
        "another program's": "PRAGMA application_id=7",
        "future version": "PRAGMA user_version=99",
        "twice": "INSERT INTO documents SELECT row + 1000, name, data, crc, 1, 1 FROM documents LIMIT 1",
    }
    if damage in statements:
        connection = sqlite3.connect(path)
        connection.execute(statements[damage])
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
