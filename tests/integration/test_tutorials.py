"""The commands of the first tutorials, one page after another, in one shell."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fireswarm import __version__

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = (
    DOCS / "how-to" / "install.md",
    *(DOCS / "tutorials" / f"{name}.md" for name in ("first-agent", "first-swarm", "first-role", "first-skill")),
)
MAX_SECONDS = 600
"""Some eighty commands, of which each is a process: on two busy cores they took four minutes."""

PIPELINE = (DOCS / "tutorials" / "own-pipeline.md",)
LAST = re.compile(r"^## (?:A model|The swarm with a model)$", re.M)
"""From this heading on a page needs a model's key."""

NEWEST = """$(swarm tasks --json | python -c 'import json, sys
print(next(task["task_id"] for task in json.load(sys.stdin) if task["skill"] == "todo-pipeline"))')"""
FAILS = " && exit 1 || test $? -eq 1"

INSTEAD = {
    "git clone REPOSITORY fireswarm": 'cp -a "$CLONE" fireswarm',
    "make setup": 'ln -s "$VENV" .venv',
    "make demo": ".venv/bin/swarm demo",  # what the target runs once it is set up
    "agent chat --session garden": "agent chat --session garden --script answers.json < /dev/null",
    "swarm show c2c402f3": "swarm show $(swarm tasks --json | python -c "
    "'import json, sys; print(json.load(sys.stdin)[0][\"task_id\"])')",
    "swarm up": 'if test -n "$UP"; then kill -INT $UP; wait $UP; fi; swarm up > up.log 2>&1 & UP=$!; '
    "until grep -q 'role processes' up.log && swarm agents --json 2>/dev/null | grep -q idle; do "
    "kill -0 $UP || { cat up.log >&2; exit 1; }; done",
    "swarm pipeline check todo": "swarm pipeline check todo || test ! -d skills/todo-find",
    "swarm pipeline run todo --input path=notes.md --again second": "swarm pipeline run todo --input path=notes.md "
    f"--again second{FAILS}",
    "swarm pipeline show 508e4d7f": f"swarm pipeline show {NEWEST}",
    "swarm pipeline resume 508e4d7f --from todo-find": f"swarm pipeline resume {NEWEST} --from todo-find",
    "swarm artifacts fdd2a8fc --to result": f"swarm artifacts {NEWEST} --to result",
    "swarm watch": "timeout 3 swarm watch || test $? -eq 124",
}
"""Replacements for commands that cannot run as printed: downloads, chats, a task id, commands until Ctrl-C."""


def commands(pages: tuple[Path, ...] = PAGES) -> list[str]:
    """Return every command of the pages in order; blocks that show a prompt hold output as well."""
    lines: list[str] = []
    for page in pages:
        text = LAST.split(page.read_text(encoding="utf-8"))[0]
        for name, language, block in re.findall(r"(?:^`([\w./-]+)`:\n\n)?^```(\w+)\n(.*?)^```$", text, re.M | re.S):
            if name:
                lines.append(f"cat > {name} <<'END'\n{block}END")
            elif language == "console" and "\n$ " in f"\n{block}":
                lines += [line[2:] for line in block.splitlines() if line.startswith("$ ") and line != "$ make setup"]
            elif language == "console":
                lines += block.splitlines()
    return [INSTEAD.get(line, line) for line in lines]


@pytest.mark.timeout(2 * MAX_SECONDS)
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_every_command_of_the_tutorials_succeeds_in_order(tmp_path: Path) -> None:
    clone, home = tmp_path / "clone", tmp_path / "home"
    home.mkdir()
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        if (ROOT / name).is_file():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, clone / name)
    done = run_in_shell(tmp_path, commands(), HOME=str(home), CLONE=str(clone))
    assert done.returncode == 0, f"{done.stdout[-3_000:]}\n{done.stderr[-3_000:]}"
    shown = [
        "One thing is open: water the basil.", "report:", f"swarm {__version__}", "1 open task, in 1 of 1 file of",
        "note.txt has 5 words",
    ]  # fmt: skip
    assert [text for text in shown if text not in done.stdout] == []


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_every_command_of_the_tutorial_of_pipelines_succeeds_and_prints_what_it_shows(tmp_path: Path) -> None:
    path = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = run_in_shell(tmp_path, commands(PIPELINE), HOME=str(tmp_path), PATH=path)
    assert done.returncode == 0, f"{done.stdout[-3_000:]}\n{done.stderr[-3_000:]}"
    printed = re.sub(r"\s+", " ", done.stdout)
    page = PIPELINE[0].read_text(encoding="utf-8")
    shown = [line for block in re.findall(r"^```console\n(.*?)^```$", page, re.M | re.S) for line in block.splitlines()]
    same = [line for line in shown if line and not CHANGING.search(line)]
    assert len(same) > 20
    assert [line for line in same if " ".join(line.split()) not in printed] == []


CHANGING = re.compile(r"[0-9a-f]{8}|^\$|^swarm up|^mkdir|^rm|^sed|^(?:tasks|steps)$|[┃┏┡│└]|, [\d.]+ s$")
"""Lines of output that hold an id or a time, or are parts of a table, which a pipe gets without a frame."""


def run_in_shell(folder: Path, lines: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    """Run commands in one shell, which stops at the first that fails."""
    script = "\n".join(["set -e", "trap 'kill $(jobs -p) 2>/dev/null' EXIT", *map(_echoed, lines)])
    environment = {"PATH": os.environ["PATH"], "VENV": str(ROOT / ".venv"), "COLUMNS": "120", **variables}
    return subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=MAX_SECONDS,
        check=False,
    )


def _echoed(command: str) -> str:
    """Print the command before it runs, so that a failure shows where it happened."""
    first = command.splitlines()[0].replace("'", "'\\''")
    return f"echo '+ {first}'\n{command}"


def test_pages_name_every_replaced_command() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in (*PAGES, *PIPELINE))
    assert [command for command in INSTEAD if command not in text] == []
