"""What a child process of the pool answers, read and written as its parent does."""

from __future__ import annotations

import io
import operator
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import fireswarm
from fireswarm.processes.child import serve
from fireswarm.processes.messages import LENGTH, import_folders, read_message, write_message

SOURCE = str(Path(fireswarm.__file__).resolve().parents[1])


class Unpicklable(Exception):
    """An error that cannot be sent to another process."""

    def __reduce__(self) -> str:
        raise TypeError("stays here")


def refuse() -> None:
    raise Unpicklable("no")


def local() -> Any:
    return lambda: None


def answers_of(*calls: tuple[Any, ...]) -> list[tuple[bool, Any]]:
    """Return what a child answers to *calls*, each a function and its arguments."""
    requests, answers = io.BytesIO(), io.BytesIO()
    for function, *arguments in calls:
        write_message(requests, pickle.dumps((function, arguments)))
    requests.seek(0)
    serve(requests, answers)
    answers.seek(0)
    return [pickle.loads(read_message(answers)) for _ in calls]


def test_each_call_gets_its_answer_and_an_error_does_not_stop_the_rest() -> None:
    first, second, third = answers_of((operator.add, 1, 2), (operator.truediv, 1, 0), (operator.mul, 3, 4))
    assert (first, third) == ((True, 3), (True, 12))
    assert second[0] is False
    assert isinstance(second[1], ZeroDivisionError)


@pytest.mark.parametrize(("call", "said"), [(refuse, "Unpicklable: no"), (local, "local")])
def test_what_cannot_be_sent_is_told_as_an_error(call: Any, said: str) -> None:
    [(succeeded, error)] = answers_of((call,))
    assert not succeeded
    assert said in str(error)


@pytest.mark.parametrize("cut", [3, LENGTH.size, LENGTH.size + 2])
def test_message_that_is_cut_off_is_no_message(cut: int) -> None:
    whole = io.BytesIO()
    write_message(whole, b"words")
    with pytest.raises(EOFError, match="closed"):
        read_message(io.BytesIO(whole.getvalue()[:cut]))


def test_message_over_the_limit_is_refused_before_it_is_read() -> None:
    pipe = io.BytesIO()
    write_message(pipe, b"words")
    pipe.seek(0)
    with pytest.raises(ValueError, match="5 bytes is longer than 4"):
        read_message(pipe, 4)
    assert pipe.tell() == LENGTH.size


def test_child_imports_nothing_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path)
    packages = str(tmp_path / "packages")
    monkeypatch.setattr("sys.path", ["", ".", str(tmp_path), str(tmp_path / "link"), "relative", packages])
    assert import_folders() == [packages]


def test_child_imports_nothing_from_a_folder_of_pythonpath_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, other = tmp_path / "project", tmp_path / "libraries"
    for folder in (here / "src", here / ".venv" / "packages", other):
        folder.mkdir(parents=True)
    (tmp_path / "link").symlink_to(here / "src")
    monkeypatch.chdir(here)
    monkeypatch.setenv("PYTHONPATH", f"{here}/src:{tmp_path}/link:src:{other}::{SOURCE}")
    monkeypatch.setattr("sys.path", [f"{here}/src", f"{tmp_path}/link", str(other), SOURCE, f"{here}/.venv/packages"])
    assert import_folders() == [str(other), SOURCE, f"{here}/.venv/packages"]


def test_command_imports_nothing_that_code_of_a_model_writes(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    for name in ("click", "psutil", "yaml", "asyncio"):
        (tmp_path / "src" / f"{name}.py").write_text("raise SystemExit('of the workspace')")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}/src"}
    words = [sys.executable, "-c", "from fireswarm.cli import swarm_command; swarm_command()", "--version"]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
