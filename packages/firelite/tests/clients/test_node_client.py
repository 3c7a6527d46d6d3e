"""The official Node.js client works against a firelite server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from google.cloud.firestore import Client

from conformance.clients import make_client
from replaced import free_port, restore, serving, wipe, write_before

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


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.mark.parametrize("change", [wipe, restore, None], ids=["wiped", "restored", "memory"])
def test_node_listener_drops_what_is_gone(
    modules: Path, tmp_path: Path, port: int, change: Callable[[Path], None] | None
) -> None:
    path = None if change is None else tmp_path / "node.db"
    environment = {
        "SMOKE_PROJECT": "node-smoke",
        "SMOKE_MODULES": str(modules),
        "METADATA_SERVER_DETECTION": "none",  # else the client looks for Google's cloud
    }
    with ExitStack() as cleanup:
        with serving(port, path) as endpoint:
            write_before(make_client(Client, endpoint, "node-smoke"), path)
            environment |= {"FIRESTORE_EMULATOR_HOST": endpoint}
            command = ["node", str(HERE / "listen.mjs")]
            listener = subprocess.Popen(command, env=os.environ | environment, stdout=subprocess.PIPE, text=True)
            assert listener.stdout is not None
            cleanup.enter_context(listener.stdout)
            cleanup.callback(listener.wait)
            cleanup.callback(listener.kill)
            assert sorted(json.loads(listener.stdout.readline())) == ["a", "b", "old"]
        if change is not None and path is not None:
            change(path)
        with serving(port, path) as endpoint:
            other: Any = make_client(Client, endpoint, "node-smoke")
            other.document("c/new").set({"x": 9})
            truth = ["new", "old"] if change is restore else ["new"]
            for line in listener.stdout:
                assert "error" not in line
                if sorted(json.loads(line)) == truth:
                    break
            else:
                pytest.fail("the listener ended")
