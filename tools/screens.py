"""Draw what commands print on a terminal as pictures for the documents: ``python -m tools.screens`` writes them all.

The commands run for real, at a pseudoterminal, with recorded answers of a model. Ids and paths that differ from run to
run are replaced by fixed ones, and so are counts that differ.
"""

from __future__ import annotations

import argparse
import fcntl
import io
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text
from tools.terminal_lines import plain, settle

ROOT = Path(__file__).resolve().parents[1]
SCREENS = ROOT / "docs" / "screens"
WIDTHS = (80, 120)
SECONDS = 120.0
SETTLED_SECONDS = 0.2
"""A prompt is answered when nothing more was printed for this time."""

NOTES = "# Plants\n\n- [x] repot the mint\n- [ ] water the basil\n"
ANSWERS: list[Any] = [
    {
        "text": "I look for open tasks.",
        "calls": [{"name": "run_command", "input": {"command": "grep -n '\\[ \\]' *.md"}}],
    },
    {
        "text": "One is open.",
        "calls": [{"name": "write_file", "input": {"path": "todo.md", "content": "- water the basil\n"}}],
    },
    "**One task is open:** water the basil (`plants.md`, line 4). I wrote it to `todo.md`.",
    {
        "calls": [
            {
                "name": "ask_user",
                "input": {"question": "Is the basil watered now?", "name": "watered", "options": ["yes", "no"]},
            }
        ]
    },
    {
        "calls": [
            {
                "name": "edit_file",
                "input": {"path": "plants.md", "old_text": "[ ] water", "new_text": "[x] water"},
            }
        ]
    },
    "All tasks are done:\n\n| task | state |\n|---|---|\n| repot the mint | done |\n| water the basil | done |",
]
TASK, MORE = "Which tasks are open?", "tick off the basil"
SCRIPT = ["--script", "answers.json", "--yes"]

COMMANDS: dict[str, tuple[list[str], list[tuple[str, str]]]] = {
    "run": (["agent", "run", TASK, *SCRIPT], []),
    "continue": (["agent", "run", MORE, "--continue", "--yes"], [("watered> ", "yes\n")]),
    "chat": (
        ["agent", "chat", *SCRIPT],
        [("> ", f"{TASK}\n"), ("> ", "/cost\n"), ("> ", f"{MORE}\n"), ("watered> ", "/model\n"), ("watered> ", "yes\n")]
        + [("> ", "\x04")],
    ),
    "demo": (["swarm", "demo", "--recorded"], []),
}
"""The command of each picture, and what is typed at which prompt."""

_FIXED = (
    (re.compile(r"\b\d{8}-\d{6}-[0-9a-f]{8}\b"), "20270102-090000-0a1b2c3d"),
    (re.compile(r"fireswarm-recorded-\w+"), "fireswarm-recorded-1a2b3c"),
    (re.compile(r"firelite://unix:\S+/store.sock"), "firelite://unix:~/plants/store.sock"),  # elsewhere for a long path
    (re.compile(r"http://127\.0\.0\.1:\d+/ui/enter\?key=[\w-]+"), "http://127.0.0.1:8091/ui/enter?key=0a1b2c"),
    (re.compile(r"\d+ reads, \d+ writes"), "250 reads, 100 writes"),
    (re.compile(r"\d[\d,]* tokens"), "2,700 tokens"),
    (re.compile(r"\b\d+\.\d s\b"), "4.0 s"),
)
_TASK_ID = re.compile(r"\b[0-9a-f]{8}\b")
_FONTS = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)


def screen(name: str, width: int, folder: Path) -> str:
    """Run the command of a picture in *folder* and return what it prints, with colours and fixed ids.

    ``continue`` goes on with the run of ``run`` in the same folder.
    """
    command, typed = COMMANDS[name]
    for file, text in (("plants.md", NOTES), ("answers.json", json.dumps(ANSWERS))):
        if not (folder / file).exists():
            (folder / file).write_text(text, encoding="utf-8")
    (folder / "home").mkdir(exist_ok=True)
    printed = _at_terminal(command, typed, width, folder) if name != "demo" else _piped(command, width, folder)
    printed = printed.replace(f"{folder.resolve()}/", "~/plants/").replace(str(folder.resolve()), "~/plants")
    for pattern, fixed in _FIXED:
        printed = pattern.sub(fixed, printed)
    if name == "demo":
        for number, task_id in enumerate(dict.fromkeys(_TASK_ID.findall(printed)), 1):
            printed = printed.replace(task_id, f"0a1b2c{number:02d}")
    shown = " ".join(f'"{word}"' if " " in word else word for word in command)
    return f"\x1b[1m$ {shown}\x1b[0m\n{printed}"


def draw(printed: str, width: int, title: str) -> str:
    """Return a picture of what was printed. It uses the fonts of the reader, and fetches none."""
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for line in printed.splitlines():
        console.print(Text.from_ansi(line))
    svg = _FONTS.sub("", console.export_svg(title=title, unique_id=f"screen-{width}"))
    svg = svg.replace("Fira Code, monospace", "ui-monospace, Menlo, Consolas, monospace")
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def text_of(printed: str) -> list[str]:
    """Return the lines that were printed, without colours."""
    return [Text.from_ansi(line).plain.rstrip() for line in printed.splitlines()]


def pictures(names: list[str]) -> Iterator[tuple[Path, str]]:
    """Yield the path and the content of each picture."""
    for width in WIDTHS:
        with tempfile.TemporaryDirectory(prefix="plants-") as folder:
            for name in names:
                place = Path(folder) / ("garden" if name in ("run", "continue") else name)
                place.mkdir(exist_ok=True)
                title = " ".join(COMMANDS[name][0][:2])
                yield SCREENS / f"{name}-{width}.svg", draw(screen(name, width, place), width, title)


def _piped(command: list[str], width: int, folder: Path) -> str:
    """Run a command without a terminal, where it prints no table that moves, and return what it prints."""
    code = f"from fireswarm.cli import {command[0]}_command as main; main()"
    env = _environment(folder) | {"COLUMNS": str(width)}
    done = subprocess.run(
        [sys.executable, "-c", code, *command[1:]],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=SECONDS,
        check=True,
    )
    return done.stdout.decode()


def _at_terminal(command: list[str], typed: list[tuple[str, str]], width: int, folder: Path) -> str:
    """Run a command at a pseudoterminal, type at its prompts, and return what it prints."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    started = subprocess.Popen(
        [sys.executable, "-c", f"from fireswarm.cli import {command[0]}_command as main; main()", *command[1:]],
        cwd=folder,
        env=_environment(folder),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    content, answered, left, end = b"", 0, list(typed), time.monotonic() + SECONDS
    while time.monotonic() < end:
        prompt = left[0][0] if left else ""
        asks = prompt and len(content) > answered and plain(content.decode("utf-8", "replace")).endswith(prompt)
        waits = SETTLED_SECONDS if asks else end - time.monotonic()
        if not select.select([master], [], [], waits)[0]:
            if not prompt:
                break
            answered = len(content)
            os.write(master, left.pop(0)[1].encode())
            continue
        try:
            content += os.read(master, 65_536)
        except OSError:  # the command has ended
            break
    os.close(master)
    started.kill()
    started.wait()
    return settle(content.decode("utf-8", "replace"))


def _environment(folder: Path) -> dict[str, str]:
    """The environment of a command: nothing of the caller's that would choose another store, model or width."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    fixed = {"HOME": str(folder / "home"), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "TMPDIR": str(folder)}
    return {**kept, **fixed, "INPUTRC": "/dev/null"}


def main() -> int:
    """Write the pictures that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *COMMANDS], default=[])
    names = parser.parse_args().names or list(COMMANDS)
    SCREENS.mkdir(exist_ok=True)
    for path, content in pictures(names):
        path.write_text(content, encoding="utf-8")
        sys.stdout.write(f"wrote {path.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
