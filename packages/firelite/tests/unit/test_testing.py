"""The pytest fixtures, and the examples of the README as they are printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from google.cloud.firestore import AsyncClient, Client

from firelite import CorruptDataFile, Database, connect
from firelite.testing import DATA_FILE, SERVED_FILE, serving

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
PYTEST_SECONDS = 120

pytestmark = pytest.mark.anyio


def python_block(containing: str) -> str:
    """Return the one Python block of the README that contains a text."""
    [code] = [code for code in re.findall(r"^```python\n(.*?)^```$", README, re.M | re.S) if containing in code]
    return code


async def test_client_keeps_its_documents_in_the_folder_of_the_test(
    firelite_client: AsyncClient, tmp_path: Path
) -> None:
    await firelite_client.document("notes/one").set({"text": "hello"})
    assert (tmp_path / DATA_FILE).is_file()
    assert (await firelite_client.document("notes/one").get()).get("text") == "hello"


async def test_server_is_the_one_that_official_clients_find(firelite_server: str, tmp_path: Path) -> None:
    assert os.environ["FIRESTORE_EMULATOR_HOST"] == firelite_server
    client: Any = Client(project="p")
    client.document("notes/one").set({"text": "hello"})
    client.close()
    assert (tmp_path / SERVED_FILE).is_file()


async def test_client_and_server_in_one_test_have_a_database_each(
    firelite_client: AsyncClient, firelite_server: str
) -> None:
    await firelite_client.document("notes/one").set({"text": "hello"})
    served: Any = Client(project=firelite_client.project)
    assert not served.document("notes/one").get().exists
    served.close()


def test_serving_releases_the_file_and_its_thread(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with serving(tmp_path / "data.db"):
        started = set(threading.enumerate()) - before
    assert started and not any(thread.is_alive() for thread in started if thread.name.startswith("firelite"))
    with Database.open(tmp_path / "data.db") as database:
        assert not database.closed


def test_file_that_cannot_be_opened_is_reported(tmp_path: Path) -> None:
    (tmp_path / "data.db").write_bytes(b"not a database" * 100)
    with pytest.raises(CorruptDataFile), serving(tmp_path / "data.db"):
        pass


def test_pytest_example_of_the_readme_passes(tmp_path: Path) -> None:
    (tmp_path / "test_notes.py").write_text(python_block("firelite_server"), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path / "test_notes.py")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PYTEST_SECONDS, check=False)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_example_in_process_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(python_block("Database.open"), "README.md", "exec", dont_inherit=True), {"__name__": "__main__"})
    assert capsys.readouterr().out == "hello\n"


async def test_data_of_the_readme_example_stays_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Database.open(tmp_path / "notes.db") as database:
        await connect(database).document("notes/one").set({"text": "hello"})
    with Database.open(tmp_path / "notes.db") as database:
        assert (await connect(database).document("notes/one").get()).get("text") == "hello"
