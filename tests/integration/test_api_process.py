"""``swarm api`` as a process: it prints a token once, answers with it, follows a task, and stops with streams open."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import httpx2
import pytest

from tests.support.fleet import environment, lay_out

API = [sys.executable, "-m", "fireswarm.cli", "api", "--port", "0"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    lay_out(tmp_path, {"nothing": ""}, settings={})
    return tmp_path


def line(stream: IO[str] | None) -> str:
    assert stream is not None
    return stream.readline()


@contextmanager
def running(root: Path, *options: str, **variables: str) -> Generator[subprocess.Popen[str]]:
    env = environment() | variables
    process = subprocess.Popen(
        [*API, *options], cwd=root, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_api_serves_requests_and_stops_while_a_stream_is_open(root: Path, how: signal.Signals) -> None:
    with running(root) as process:
        url = line(process.stdout).split()[2].removesuffix("/v1,")
        token = line(process.stdout).split()[-1]
        headers = {"Authorization": f"Bearer {token}"}
        assert httpx2.get(f"{url}/v1/status").status_code == 401
        with httpx2.Client(base_url=url, headers=headers) as client:
            assert client.get("/v1/status").json()["session"] == "default"
            sent = client.post("/v1/tasks", json={"objective": "count", "role": "scout"})
            task = sent.raise_for_status().json()["task_id"]
            with client.stream("GET", f"/v1/events?task={task}") as stream:
                lines = stream.iter_lines()
                told = next(text for text in lines if text.startswith("data: "))
                assert json.loads(told.removeprefix("data: "))["status"] == "queued"
                process.send_signal(how)
                assert [text for text in lines if text.startswith("data: ")] == []
        assert process.wait(10) == 0
        errors = process.stderr.read() if process.stderr else ""
        assert errors.strip() == "stopped" and token not in errors


def test_api_refuses_to_start_on_an_open_address_without_authentication(root: Path) -> None:
    done = subprocess.run(
        [*API, "--host", "0.0.0.0"], cwd=root, env=environment(), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1 and "does not start without authentication" in done.stderr


def test_api_on_an_open_address_serves_the_console_to_the_token_and_prints_no_link(root: Path) -> None:
    token = "a-token-for-tests-of-43-characters-in-length"
    with running(root, "--host", "0.0.0.0", FIRESWARM_API_TOKEN=token) as process:
        assert line(process.stdout).startswith("API on http://0.0.0.0:")
        told = line(process.stdout)
        assert told.endswith("/ui/, for the token and for nobody else\n") and "key=" not in told
        url = told.split()[2].rstrip(",").replace("0.0.0.0", "127.0.0.1")
        assert httpx2.get(url).status_code == 401
        page = httpx2.get(url, headers={"Authorization": f"Bearer {token}"})
        assert page.status_code == 200 and "New objective" in page.text


def test_occupied_port_is_named_in_the_error(root: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [*API[:-1], port]
        done = subprocess.run(command, cwd=root, env=environment(), capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "cannot listen on" in done.stderr and f"--port {port}" in done.stderr


def test_importing_the_cli_loads_no_web_framework(root: Path) -> None:
    code = "import sys, fireswarm.cli.swarm.main; print(sorted({'fastapi', 'uvicorn', 'starlette'} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, env=os.environ | environment(), capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]", done.stderr
