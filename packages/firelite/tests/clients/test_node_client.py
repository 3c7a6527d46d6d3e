"""The official Node.js client works against a firelite server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.node

HERE = Path(__file__).parent / "node"
# Downloading the client from an npm registry, once; later runs find it in the cache folder.
INSTALL_SECONDS = 300
RUN_SECONDS = 60


@pytest.fixture(scope="module")
def modules() -> Path:
    """A folder with the client installed, outside the repository and kept between runs."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("needs node and npm on the PATH")
    folder = Path(os.environ.get("FIRELITE_NODE_CACHE") or Path(tempfile.gettempdir()) / "firelite-node")
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "node_modules" / "@google-cloud" / "firestore" / "package.json").exists():
        shutil.copy(HERE / "package.json", folder)
        command = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"]
        installed = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_SECONDS)
        if installed.returncode:
            pytest.skip(f"npm could not install the client: {installed.stderr[-500:]}")
    return folder


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "firelite", "serve", "--data", str(tmp_path / "node.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield json.loads(server.stdout.readline())["endpoint"]
        server.terminate()
        assert server.wait(RUN_SECONDS) == 0


def test_node_client_can_read_write_query_and_listen(modules: Path, endpoint: str) -> None:
    environment = {
        **os.environ,
        "FIRESTORE_EMULATOR_HOST": endpoint,
        "SMOKE_PROJECT": "node-smoke",
        "SMOKE_MODULES": str(modules),
    }
    run = subprocess.run(
        ["node", str(HERE / "smoke.mjs")], env=environment, capture_output=True, text=True, timeout=RUN_SECONDS
    )
    assert run.returncode == 0, run.stderr
    seen: dict[str, Any] = json.loads(run.stdout)
    assert seen == {
        "document": {"n": 5, "deep": {"path": "x"}, "list": [1, {"x": None}, 2], "at": True},
        "create": 6,
        "update": 5,
        "stale": 9,
        "getAll": [True, False],
        "range": ["d", "c"],
        "or": ["a", "d"],
        "last": ["c", "d"],
        "cursor": ["c", "d"],
        "select": {"n": 5},
        "aggregate": {"count": 3, "sum": 297},
        "group": ["1"],
        "collections": ["c", "x"],
        "listed": ["y"],
        "counter": 8,
        "readOnly": 1,
        "query": [[], ["added a"], ["modified a"], ["removed a"]],
        "watched": [False, True, False],
        "bulk": 30,
        "deleted": 0,
        "partitions": True,
    }
