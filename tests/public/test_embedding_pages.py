"""The examples of the pages about embedding run as they are printed."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import json
import os
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Generator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from tests.support.patience import PATIENCE_SECONDS

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
PUBLIC = ("fireswarm", "fireswarm.testing")


def blocks(name: str, language: str = "python") -> list[str]:
    text = (ROOT / "docs" / "tutorials" / name).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


async def run_cell(code: CodeType, names: dict[str, Any]) -> None:
    waiting = eval(code, names)
    if inspect.isawaitable(waiting):
        await waiting


def test_notebook_cells_run_in_order_on_one_event_loop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def notebook() -> None:
        names: dict[str, Any] = {"__name__": "__main__"}
        for number, cell in enumerate(blocks("in-a-notebook.md")):
            code = compile(cell, f"<cell {number}>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            await asyncio.create_task(run_cell(code, names))

    with contextlib.chdir(tmp_path):
        asyncio.run(notebook())
    printed = capsys.readouterr().out
    assert printed.startswith("5 words\n")
    assert re.search(r"scout step_finished\n.*1 files?", printed), printed


@contextlib.contextmanager
def served(folder: Path) -> Generator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "main:app", "--port", str(port), "--no-access-log"]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    with subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            assert any("Uvicorn running" in line for line in process.stderr), "the application did not come up"
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(20)


def post(url: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=PATIENCE_SECONDS) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_fastapi_application_answers_and_stops(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    (tmp_path / "main.py").write_text(blocks("in-fastapi.md")[0], encoding="utf-8")
    (tmp_path / "note.txt").write_text("one two three four five\n", encoding="utf-8")
    with served(tmp_path) as url:
        assert post(f"{url}/count?path=note.txt") == (200, {"summary": "5 words"})
        status, problem = post(f"{url}/count?path=missing.txt")
    assert status == 422
    assert "missing.txt" in problem["detail"]


def test_example_tests_of_the_page_pass_with_the_installed_plugin(tmp_path: Path) -> None:
    (tmp_path / "test_skills.py").write_text(blocks("in-your-tests.md")[0], encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_page_imports_public_names_only(page: Path) -> None:
    imports = re.findall(
        r"^\s*(?:from (fireswarm[\w.]*) import|import (fireswarm[\w.]*))", page.read_text("utf-8"), re.M
    )
    assert {one or other for one, other in imports} <= set(PUBLIC)


@pytest.mark.parametrize("file", sorted((ROOT / "skills").rglob("*.py")), ids=lambda file: "/".join(file.parts[-3:]))
def test_pack_imports_public_names_only(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            assert node.module == "fireswarm" or not node.module.startswith("fireswarm."), node.module
        elif isinstance(node, ast.Import):
            assert not any(alias.name.startswith("fireswarm.") for alias in node.names)
