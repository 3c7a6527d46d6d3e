"""The wheel of firelite works where fireswarm is not installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Generator
from configparser import ConfigParser
from contextlib import contextmanager
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

PROJECT = Path(__file__).resolve().parents[2] / "packages" / "firelite"
STOP_SECONDS = 20

USE = """
import importlib.util, pkgutil, sys
from google.cloud.firestore import Client
import firelite
assert importlib.util.find_spec("fireswarm.errors") is None
for module in pkgutil.walk_packages(firelite.__path__, "firelite."):
    if module.name != "firelite.__main__":
        importlib.import_module(module.name)
client = Client(project="p")
client.document("a/b").set({"x": 1})
print(firelite.__file__, client.document("a/b").get().get("x"))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, unpacked."""
    folder = tmp_path_factory.mktemp("firelite")
    [built] = WheelBuilder(str(PROJECT)).build(directory=str(folder), versions=["standard"])
    with zipfile.ZipFile(built) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def python(wheel: Path, *words: str) -> tuple[list[str], dict[str, str]]:
    """Return a command and its environment: the wheel and installed packages, but no package in development.

    Those come through ``.pth`` files, which Python does not read with ``-S``.
    """
    path = os.pathsep.join((str(wheel), sysconfig.get_path("purelib")))
    return [sys.executable, "-S", *words], {**os.environ, "PYTHONPATH": path}


@contextmanager
def served(wheel: Path, data: Path) -> Generator[str]:
    command, environment = python(wheel, "-m", "firelite", "serve", "--data", str(data))
    with subprocess.Popen(command, env=environment, cwd=wheel, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield json.loads(server.stdout.readline())["endpoint"]
        server.terminate()
        assert server.wait(STOP_SECONDS) == 0


def test_server_and_client_work_without_fireswarm(wheel: Path, tmp_path: Path) -> None:
    with served(wheel, tmp_path / "data.db") as endpoint:
        command, environment = python(wheel, "-c", USE)
        environment["FIRESTORE_EMULATOR_HOST"] = endpoint
        done = subprocess.run(command, env=environment, cwd=wheel, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    file, value = done.stdout.split()
    assert Path(file).is_relative_to(wheel) and value == "1"


def test_wheel_has_the_command_the_pytest_plugin_types_and_the_license(wheel: Path) -> None:
    [info] = wheel.glob("firelite-*.dist-info")
    entry_points = ConfigParser()
    entry_points.read(info / "entry_points.txt")
    assert dict(entry_points["console_scripts"]) == {"firelite": "firelite.__main__:main"}
    assert dict(entry_points["pytest11"]) == {"firelite": "firelite.testing"}
    assert (wheel / "firelite" / "py.typed").is_file()
    assert (info / "licenses" / "LICENSE").read_bytes() == (PROJECT.parents[1] / "LICENSE").read_bytes()
