"""The command line: errors at startup, and the token. Serving is tested with real processes in test_durability."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.firestore import Client

from firelite.__main__ import TOKEN, main
from firelite.database import Database

STOP_SECONDS = 20


def test_command_without_a_subcommand_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 2
    assert "COMMAND" in capsys.readouterr().err


def test_missing_index_file_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--indexes", str(tmp_path / "none.json")]) == 1
    assert "none.json" in capsys.readouterr().err


def test_data_file_in_use_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Database.open(tmp_path / "data.db"):
        assert main(["serve", "--data", str(tmp_path / "data.db")]) == 1
    assert "is open in process" in capsys.readouterr().err


def test_address_of_another_machine_is_reported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN, "a-secret")
    assert main(["serve", "--host", "192.0.2.1"]) == 1
    assert "Cannot listen on 192.0.2.1" in capsys.readouterr().err


def test_address_open_to_other_machines_needs_a_token(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(TOKEN, raising=False)
    assert main(["serve", "--host", "0.0.0.0"]) == 1
    assert f"set the environment variable {TOKEN}" in capsys.readouterr().err


@pytest.mark.parametrize("token", ["", "a-secret"], ids=["open", "with-token"])
def test_loopback_server_refuses_clients_only_if_it_has_a_token(monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    command = [sys.executable, "-m", "firelite", "serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {TOKEN: token}) as process:
        assert process.stdout is not None
        endpoint: str = json.loads(process.stdout.readline())["endpoint"]
        assert endpoint.startswith("127.0.0.1:")
        monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", endpoint)
        client: Any = Client(project="p")
        if token:
            with pytest.raises(exceptions.Unauthenticated, match="authorization: Bearer"):
                client.document("a/b").get()
        else:
            assert not client.document("a/b").get().exists
        client.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_SECONDS) == 0
