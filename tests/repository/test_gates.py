"""The gates report faults that are planted in a copy of the package."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "fireswarm"
FIRELITE = ROOT / "packages" / "firelite" / "src" / "firelite"
ROOMS = sorted(path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists())
UPWARD = {room: "fireswarm.cli" for room in ROOMS if room != "cli"}
SDK_ROOMS = {"api", "cli", "llm", "storage"}


def gates() -> ModuleType:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        spec = importlib.util.spec_from_file_location("fireswarm_gates", ROOT / "tools" / "gates.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(ROOT / "tools"))
    return module


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return import-linter's report on a copy in which every room has a forbidden import."""
    copy = tmp_path_factory.mktemp("copy")
    for package in (SOURCE, FIRELITE):
        shutil.copytree(package, copy / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    for room in ROOMS:
        above = UPWARD.get(room)
        lines = [f"import {above}\n"] if above else []
        if room not in SDK_ROOMS:
            lines += ["import typer\n", "import google.cloud.firestore_v1\n"]
        (copy / "fireswarm" / room / "planted.py").write_text('"""Planted."""\n' + "".join(lines), encoding="utf-8")
    for name, line in (("firelite", "import fireswarm.redaction"), ("fireswarm/swarm", "import firelite.database")):
        (copy / name / "planted_too.py").write_text(f'"""Planted."""\n{line}\n', encoding="utf-8")
    program = (
        "import sys; sys.path.insert(0, '.'); from importlinter.cli import lint_imports_command as run; "
        "sys.argv = ['lint-imports', '--no-cache']; run()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=copy, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return " ".join(done.stdout.split())


@pytest.mark.parametrize("room", UPWARD)
def test_import_of_a_room_above_is_reported(planted: str, room: str) -> None:
    assert f"fireswarm.{room}.planted -> fireswarm.cli" in planted


@pytest.mark.parametrize("room", [room for room in ROOMS if room not in SDK_ROOMS])
def test_sdk_in_a_room_of_the_core_is_reported(planted: str, room: str) -> None:
    for sdk in ("typer", "google"):
        assert f"fireswarm.{room}.planted -> {sdk}" in planted


def test_import_of_fireswarm_in_firelite_is_reported(planted: str) -> None:
    assert "firelite.planted_too -> fireswarm.redaction" in planted


def test_import_of_firelite_outside_opening_and_the_store_commands_is_reported(planted: str) -> None:
    assert "fireswarm.swarm.planted_too -> firelite.database" in planted


def test_folder_with_too_many_files_is_reported(tmp_path: Path) -> None:
    for number in range(13):
        (tmp_path / "pkg" / "room").mkdir(parents=True, exist_ok=True)
        (tmp_path / "pkg" / "room" / ("__init__.py" if not number else f"m{number}.py")).write_text("")
    assert list(gates().layout_faults(tmp_path / "pkg")) == ["pkg/room: 13 files, more than 12: split it"]


def test_duplicate_class_import_alias_and_participle_name_are_reported(tmp_path: Path) -> None:
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "a.py").write_text("class Run:\n    pass\n")
    (package / "b.py").write_text(
        "from pkg import a as first\n\n\nclass Run:\n    pass\n\n\ndef told() -> None:\n    pass\n"
    )
    assert sorted(gates().name_faults(package)) == [
        "b.py:1 imports a as first: rename the file instead",
        "b.py:4 class Run: a.py has one of that name",
        "b.py:8 told: a function is named by what it does",
    ]


def test_cut_at_a_literal_limit_is_reported(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "room.py").write_text("short = text[:99]\nnamed = text[:LIMIT]\nlong = text[:2_000]\n")

    assert list(gates().cut_faults(tmp_path / "pkg")) == [
        "pkg/room.py:3 cuts at 2000: name the limit, see contracts/limits.py"
    ]


def test_face_that_uses_the_board_is_reported(tmp_path: Path) -> None:
    for place in ("api/routes", "cli", "swarm"):
        (tmp_path / place).mkdir(parents=True)
    for name in ("api/routes/tasks.py", "cli/main.py", "swarm/worker.py", "client.py", "testing.py"):
        (tmp_path / name).write_text(
            "async def act(swarm):\n    await swarm.get('1')\n    await swarm.parts.board.get('1')\n"
        )
    assert [fault.partition(" ")[0] for fault in gates().face_faults(tmp_path)] == [
        "api/routes/tasks.py:3",
        "cli/main.py:3",
        "testing.py:3",
    ]


def test_module_getattr_that_returns_any_is_reported(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("def __getattr__(name: str) -> Any: ...\n")
    [fault] = gates().typing_faults(tmp_path / "pkg")
    assert fault.startswith("__init__.py:1 __getattr__ returns Any")


def test_drift_test_finds_events_in_every_package() -> None:
    """An undocumented event planted in any room is found by the pattern that the drift test uses."""
    from tests.repository.test_docs import noted_events

    for room in ROOMS:
        assert "planted_event" in noted_events({Path(room) / "x.py": 'journal.note("planted_event", a=1)'})
    assert {"skill_chosen", "turn_failed", "advice_required"} <= noted_events()
