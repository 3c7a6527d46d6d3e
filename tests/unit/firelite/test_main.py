"""Errors of the command line at startup. Serving is tested with real processes in test_durability."""

from __future__ import annotations

from pathlib import Path

import pytest

from fireswarm.firelite.__main__ import main
from fireswarm.firelite.database import Database


def test_missing_index_file_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--indexes", str(tmp_path / "none.json")]) == 1
    assert "none.json" in capsys.readouterr().err


def test_data_file_in_use_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Database.open(tmp_path / "data.db"):
        assert main(["--data", str(tmp_path / "data.db")]) == 1
    assert "is open in process" in capsys.readouterr().err


def test_address_of_another_machine_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--host", "192.0.2.1"]) == 1
    assert "192.0.2.1" in capsys.readouterr().err
