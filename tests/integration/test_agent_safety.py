"""The agent command leaks no secrets, and leaves no processes behind when it is stopped."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path

import psutil
import pytest

from tests.support.commands import GOOD, TASK, Done, agent, at, environment, events, kept, lay_out, script, serving
from tests.support.minds import KEY, KEYED, command, decided, use
from tests.support.patience import PATIENCE_SECONDS
from tests.support.providers import Reply, in_order

SECRET = "hunter2-and-a-half"
SPACED = "open sesame 4711 please"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return lay_out(tmp_path)


# ── secrets ─────────────────────────────────────────────────────────────────────────────────────────────


def leaks(root: Path, done: Done) -> list[str]:
    """Return each output and file that contains a planted secret, once per secret."""
    texts = {"stdout": done.stdout, "stderr": done.stderr}
    texts |= {
        str(path): path.read_text("utf-8", "replace")
        for folder in (kept(root), root / "runs")
        for path in folder.rglob("*")
        if path.is_file()
    }
    return [where for where, text in texts.items() for secret in (SECRET, SPACED, KEY) if secret in text]


@pytest.mark.parametrize("provider", KEYED)
@pytest.mark.parametrize("as_json", [False, True])
def test_planted_secrets_appear_in_no_file_and_no_output(provider: str, as_json: bool, root: Path) -> None:
    (root / "secret.txt").write_text(f"{SECRET}\n{SPACED}\n{KEY}\n")
    spelled = "".join(f"\\u{ord(char):04x}" for char in SECRET)
    answers = [
        Reply(status=500, message=f"failed for {KEY} and {SECRET}"),
        Reply(f"no JSON, but {SECRET} and {SPACED}"),
        Reply(decided(command("cat secret.txt; cat secret.txt >&2; env"), text=f"to see {SECRET}")),
        Reply(decided(text=f"It is {SPACED}, {KEY} and SPELLED").replace("SPELLED", spelled)),
    ]
    with serving(in_order(*answers)) as served:
        keys = at(served, root, stream=True)
        shown = ["--json"] if as_json else []
        arguments = (
            "run",
            f"{TASK}, whose word is {SECRET} or {SPACED}",
            "--provider",
            provider,
            "--debug-llm",
            "--yes",
        )
        done = agent(
            root, *arguments, "--debug-llm", *shown, FORCE_COLOR="1", MY_PASSWORD=SECRET, PHRASE_TOKEN=SPACED, **keys
        )
        assert len(served.calls) == 4
    assert done.code == 0, done.stderr
    assert "[redacted]" in done.stdout
    assert leaks(root, done) == []
    bodies = {path.name for path in kept(root).glob("*/bodies/*")}
    assert {"llm_1.0.1.request.json", "llm_1.0.2.response.json"} <= bodies
    replayed = agent(root, "replay", "latest", "--event-stream")
    assert leaks(root, replayed) == []


def test_chat_and_skill_files_contain_no_secrets(root: Path) -> None:
    (root / "notes.md").write_text(f"# Notes\n\nThe password is {SECRET}, and nobody may know it. It is important.\n")
    plan = decided(use("content-summarizer", path=str(root)))
    typed = f"summarize the notes, {SECRET} included\n\n"
    done = agent(root, "chat", *script(root, plan, GOOD), typed=typed, MY_PASSWORD=SECRET)
    assert done.code == 0, done.stderr
    assert any(kept(root).glob("*/artifacts/*/*"))
    assert leaks(root, done) == []


def test_model_that_writes_placeholders_back_destroys_no_secret(root: Path) -> None:
    kept = f"MY_PASSWORD={SECRET}\nPORT=1\n"
    (root / "settings.env").write_text(kept)
    given = {"path": "settings.env", "content": "MY_PASSWORD=[redacted]\nPORT=2\n"}
    lost = {**given, "content": "export PASSWORD=[redacted]\n"}
    edited = {
        "path": "settings.env",
        "old_text": "MY_PASSWORD=[redacted]\nPORT",
        "new_text": "MY_PASSWORD=[redacted]\nP",
    }
    calls = [
        decided({"name": "read_file", "input": {"path": "settings.env"}}),
        *(decided({"name": name, "input": each}) for name, each in (("write_file", given), ("write_file", lost))),
        decided({"name": "edit_file", "input": edited}),
        decided({"name": "write_file", "input": {**given, "path": "copy.env"}}),
    ]
    done = agent(root, "run", TASK, *script(root, *calls, GOOD), "--yes", MY_PASSWORD=SECRET)
    assert done.code == 0, done.stderr
    assert (root / "settings.env").read_text() == f"MY_PASSWORD={SECRET}\nP=2\n"
    assert (root / "copy.env").read_text() == given["content"]
    assert leaks(root, done) == []


def test_model_request_bodies_are_stored_only_when_configured(root: Path) -> None:
    (root / "agent.yaml").write_text("logging:\n  debug_llm_bodies: true\n")
    agent(root, "run", TASK, *script(root, GOOD), "--debug-llm", "false")
    assert not list(kept(root).rglob("bodies"))
    agent(root, "run", TASK, *script(root, GOOD))
    assert len(list(kept(root).rglob("bodies/*"))) == 2


# ── signals ─────────────────────────────────────────────────────────────────────────────────────────────

STUBBORN = "trap '' TERM; "
NAP = f"60.{os.getpid()}"
"""An argument that tells the processes of this test from all others, whatever their ids are in a namespace."""

LONG = f"(sleep {NAP} & setsid sleep {NAP} &); echo got so far; echo $$ > ready; sleep {NAP}; sleep {NAP}"


@contextlib.contextmanager
def running(root: Path, line: str) -> Generator[subprocess.Popen[str]]:
    """Run the command as a process that executes *line*, and wait for it at the FIFO ``ready``."""
    os.mkfifo(root / "ready")
    code = "from fireswarm.cli import agent_command; agent_command()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "run", TASK, "--yes", *script(root, decided(command(line)), GOOD)],
        cwd=root, env=environment(root), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    threading.Thread(target=open_at_end, args=(process, root / "ready"), daemon=True).start()
    try:
        assert (root / "ready").read_text(), "the run ended before its command started"
        while not left_running():  # a shell that has not executed its `sleep` yet
            assert process.poll() is None, "the run ended before its command slept"
        yield process
    finally:
        process.kill()
        process.communicate()


def open_at_end(process: subprocess.Popen[str], fifo: Path) -> None:
    """Let a reader of *fifo* go on without a text when *process* has ended."""
    process.wait()
    with contextlib.suppress(OSError):  # nobody reads it any more
        os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))


def left_running() -> list[psutil.Process]:
    return [process for process in psutil.process_iter(["cmdline"]) if NAP in (process.info["cmdline"] or ())]


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_stops_a_run_gracefully(number: signal.Signals, root: Path) -> None:
    with running(root, LONG) as process:
        process.send_signal(number)
        _, stderr = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 130, stderr
    last = events(root)[-4:]
    kinds = ["signal_received", "graceful_shutdown_started", "skill_step_executed", "run_failed"]
    assert [event.event_type.value for event in last] == kinds
    assert last[0].payload["signal"] == number.name
    assert (last[2].payload["status"], last[2].payload["stdout_summary"]) == ("interrupted", "got so far\n")
    assert last[3].payload["reason"] == "interrupted"
    assert stderr.splitlines()[-1] == f"Continue it: agent resume {last[0].run_id}"
    assert f"error (interrupted): stopped by {number.name}" in stderr
    assert "Traceback" not in stderr
    assert left_running() == []


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_second_signal_kills_a_stubborn_run_and_its_children(root: Path) -> None:
    with running(root, f"{STUBBORN} mkdir .vscode; echo evil > .envrc; {LONG}") as process:
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        for line in process.stderr:
            if "graceful_shutdown_started" in line:
                break
        else:
            pytest.fail("the run ended before the first signal")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 130
    assert left_running() == []
    assert not (root / ".envrc").exists() and not (root / ".vscode").exists()
    assert events(root)[-1].payload["reason"] == "interrupted"


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("next_command", [("run", TASK), ("chat",), ("resume", "latest"), ("skills", "list")])
def test_next_start_sets_aside_what_a_killed_run_left_before_it_reads_it(
    next_command: tuple[str, ...], root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with running(root, f"{STUBBORN} echo 'permissions: [' > agent.yaml; echo evil > .envrc; {LONG}") as process:
        process.kill()
        process.wait()
        has_names = (root / ".envrc").exists()
    done = agent(root, *next_command, *(script(root, GOOD) if next_command[0] in ("run", "chat") else ()))
    assert done.code == 0, "the settings that the command made were read"
    assert not (root / ".envrc").exists() and not (root / "agent.yaml").exists()
    told = f"in {root}, after a command that was killed: .envrc is now .envrc.set-aside-1: only a person makes .envrc"
    assert (told in caplog.text) == has_names
