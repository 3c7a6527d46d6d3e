"""Everything that is printed for a shell can be pasted into one."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from fireswarm.contracts.base import command_line
from tests.support.fleet import environment, lay_out
from tests.support.swarm_command import swarm

ODD = "Büro Ö & Co's $HOME"
SOURCES = Path(__file__).parents[2] / "src" / "fireswarm"
UNQUOTED = re.compile(
    r"(?:`|\"|: )(?:swarm|agent) (?:[a-z]+ )*\{(?!command_line|command\b)|export [A-Z_]+=\{(?!command_line|shlex)"
)
"""A command in a text, followed by a value that ``command_line`` did not quote."""

ALLOWED = {"agent {agent_id}", "agent {agent.agent_id}"}
"""Sentences about an agent, which are no commands."""


def test_a_line_is_read_by_a_shell_as_it_was_given() -> None:
    words = ["swarm", "show", ODD, "a\nb", "", "--reason", "it's"]
    out = subprocess.run(
        ["/bin/sh", "-c", f"printf '%s|' {command_line(*words)}"], capture_output=True, text=True, check=True
    )
    assert out.stdout == "".join(f"{word}|" for word in words)


def test_no_text_in_the_code_has_a_command_with_an_unquoted_value() -> None:
    found = [
        f"{path.name}: {line.strip()}"
        for path in SOURCES.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if UNQUOTED.search(line) and not any(text in line for text in ALLOWED)
    ]
    assert found == []


def test_the_printed_address_can_be_pasted_and_the_printed_project_has_the_tasks(tmp_path: Path) -> None:
    folder = tmp_path / ODD
    folder.mkdir()
    lay_out(folder, {}, settings={"worker": {"drain_seconds": 1}})
    assert swarm(folder, "submit", "a task", "--role", "scout").returncode == 0
    with subprocess.Popen(
        [sys.executable, "-m", "fireswarm.cli", "up", "--roles", "memory"],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            lines: list[str] = []
            for line in process.stdout:
                lines.append(line.strip())
                if "role processes" in line:
                    break
            export = next(line for line in lines if line.startswith("export "))
            project = next(line for line in lines if line.startswith("the project ")).rpartition(": ")[2]
            script = f'{export}; printf %s "$FIRESTORE_EMULATOR_HOST"'
            address = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True).stdout
            assert address == shlex.split(export)[1].partition("=")[2]
            assert ODD in address or address.startswith("unix:/tmp/fireswarm-")
            code = READ.format(project=project)
            read = subprocess.run(
                [sys.executable, "-c", code],
                env=environment() | {"FIRESTORE_EMULATOR_HOST": address},
                capture_output=True,
                text=True,
                check=False,
            )
            assert read.stdout.strip() == "a task", read.stderr
        finally:
            process.terminate()


READ = """
from google.auth.credentials import AnonymousCredentials
from google.cloud.firestore_v1 import Client
client = Client(project="{project}", credentials=AnonymousCredentials())
for task in client.collection("agent_tasks").stream(timeout=20):
    print(task.get("objective"))
"""
