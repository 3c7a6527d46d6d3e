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
LAST = re.compile(r"^## (?:A model|The swarm with a model)$", re.M)
"""From this heading on a page needs a model's key."""

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
    "swarm watch": "timeout 3 swarm watch || test $? -eq 124",
}
"""Replacements for commands that cannot run as printed: downloads, chats, a task id, commands until Ctrl-C."""


def commands() -> list[str]:
    """Return every command of the pages in order; blocks that show a prompt hold output as well."""
    lines: list[str] = []
    for page in PAGES:
        text = LAST.split(page.read_text(encoding="utf-8"))[0]
        for name, language, block in re.findall(r"(?:^`([\w./-]+)`:\n\n)?^```(\w+)\n(.*?)^```$", text, re.M | re.S):
            if name:
                lines.append(f"cat > {name} <<'END'\n{block}END")
            elif language == "console" and "\n$ " in f"\n{block}":
                lines += [line[2:] for line in block.splitlines() if line.startswith("$ ") and line != "$ make setup"]
            elif language == "console":
                lines += block.splitlines()
    return [INSTEAD.get(line, line) for line in lines]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_every_command_of_the_tutorials_succeeds_in_order(tmp_path: Path) -> None:
    clone, home = tmp_path / "clone", tmp_path / "home"
    home.mkdir()
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        if (ROOT / name).is_file():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, clone / name)
    script = "\n".join(["set -e", "trap 'kill $(jobs -p) 2>/dev/null' EXIT", *map(_echoed, commands())])
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "CLONE": str(clone),
        "VENV": str(ROOT / ".venv"),
        "COLUMNS": "120",
    }
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-3_000:]}\n{done.stderr[-3_000:]}"
    shown = [
        "One thing is open: water the basil.", "report:", f"swarm {__version__}", "1 open task, in 1 of 1 file of",
        "note.txt has 5 words",
    ]  # fmt: skip
    assert [text for text in shown if text not in done.stdout] == []


def _echoed(command: str) -> str:
    """Print the command before it runs, so that a failure shows where it happened."""
    first = command.splitlines()[0].replace("'", "'\\''")
    return f"echo '+ {first}'\n{command}"


def test_pages_name_every_replaced_command() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [command for command in INSTEAD if command not in text] == []
