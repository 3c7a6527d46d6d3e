"""`agent chat` as a person types: editing, history, pastes, commands, Ctrl+C and Ctrl+D, and odd input."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests.support.commands import environment, kept, lay_out, script
from tests.support.terminal import CTRL_C, CTRL_D, PASTE, UP, Terminal, agent_at_terminal

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudoterminal")

MODEL = """
import json, pathlib

def answer(request):
    said = [message.text for message in request.messages if message.role == "user" and not message.outputs]
    message = said[-1].split("# Surroundings")[0].removeprefix("# Task").strip()
    last = request.messages[-1]
    pathlib.Path("said.jsonl").open("a").write(json.dumps(message) + "\\n")
    if last.outputs:
        return f"It returned {last.outputs[0].text} {last.text}"
    if message.startswith("think"):
        pathlib.Path("thinks").touch()
        while not pathlib.Path("go").exists():
            pass
    if message.startswith("think of"):
        return {"calls": [{"name": "run_command", "input": {"command": "echo once >> log"}}], "text": "I begin."}
    if message.startswith(("ask", "think")):
        call = {"name": "ask_user", "input": {"question": "Which one?", "name": "which"}}
        return {"calls": [call], "text": "One question."}
    if message.startswith("work"):
        calls = [{"name": "run_command", "input": {"command": "echo once >> log; echo begun; sleep 60"}}]
        calls.append({"name": "run_command", "input": {"command": "echo twice >> log"}})
        return {"calls": calls, "text": "I begin."}
    if message.startswith("wait"):
        calls = [{"name": "run_command", "input": {"command": "echo once >> log; until [ -e go ]; do :; done"}}]
        return {"calls": calls, "text": "I wait."}
    return f"heard {len(message)} characters, {message.count(chr(10)) + 1} lines"

answer.tools = True
"""

CHAT = """
import sys
sys.argv = ["agent", "chat", "--script", "model.py:answer", "--yes"]
from fireswarm.cli import agent_command
agent_command()
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text(MODEL)
    return lay_out(tmp_path)


def chat(
    root: Path, *options: str, columns: int = 80, model: str = "model.py:answer", approves: bool = True
) -> Terminal:
    arguments = ("chat", "--script", model, *(["--yes"] if approves else []), *options)
    terminal = agent_at_terminal(root, *arguments, env=environment(root), columns=columns)
    terminal.expect("/help lists the commands.")
    terminal.expect("> ")
    return terminal


def begin_work(terminal: Terminal, root: Path) -> None:
    """Give the agent work, and wait until its first command has begun."""
    terminal.type("work\n")
    terminal.expect("I begin.")
    while not (root / "log").exists():
        terminal.type("")


def said(root: Path) -> list[str]:
    """The messages that the model was asked with."""
    return [json.loads(line) for line in (root / "said.jsonl").read_text().splitlines()]


def steering(root: Path) -> list[str]:
    """What the model was told in its work, of the one run."""
    [run] = kept(root).glob("2*")
    steps = [json.loads(line) for line in (run / "steps.jsonl").read_text().splitlines()]
    return [step["result"]["text"] for step in steps if step["step"].startswith("steering:")]


def test_line_is_edited_and_ctrl_d_leaves(root: Path) -> None:
    with chat(root) as terminal:
        terminal.type("hallo\x1b[D\x1b[D\x1b[D\x7fe\n")  # back by three, delete, type
        terminal.expect("heard 5 characters, 1 lines")
        terminal.expect("> ")
        terminal.type(CTRL_D)
        assert terminal.ended() == 0
    assert said(root) == ["hello"]


def test_history_lasts_between_chats_without_secrets(root: Path) -> None:
    key = "sk-ant-api03-" + "a1B2" * 20
    with chat(root) as terminal:
        for message in ("the first", f"the key is {key}"):
            terminal.type(f"{message}\n")
            terminal.expect("heard ")
            terminal.expect("> ")
        terminal.type(CTRL_D)
        assert terminal.ended() == 0
    path = kept(root) / "chats" / "history.jsonl"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert key not in path.read_text()
    with chat(root, "--session", "another") as terminal:
        terminal.type(UP + UP + "\n")
        terminal.expect("heard 9 characters, 1 lines")
    assert said(root)[-1] == "the first"


@pytest.mark.parametrize("columns", [80, 120])
def test_paste_of_several_lines_is_one_message(columns: int, root: Path) -> None:
    text = "def f():\n\treturn 'äöü 漢字'\n\n# end"
    with chat(root, columns=columns) as terminal:
        terminal.type(f"look: {PASTE[0]}{text}{PASTE[1]}\n")
        terminal.expect("4 lines")
    assert said(root) == [f"look: {text}"]


def test_line_that_ends_in_a_backslash_goes_on(root: Path) -> None:
    with chat(root) as terminal:
        terminal.type("one\\\n")
        terminal.expect("… ")
        terminal.type("two\n")
        terminal.expect("2 lines")
    assert said(root) == ["one\ntwo"]


def test_large_paste_is_one_message(root: Path) -> None:
    (root / "agent.yaml").write_text("model: {max_context_tokens: 2000000}\n")
    text = "".join(f"line {number} of a large file\n" for number in range(40_000))
    with chat(root) as terminal:
        terminal.type(f"{PASTE[0]}{text}{PASTE[1]}\n")
        terminal.expect("40000 lines", 120)
        terminal.expect("> ")
        terminal.type(CTRL_D)
        assert terminal.ended() == 0
    assert said(root)[0].strip() == text.strip()


def test_message_that_no_model_takes_is_refused_and_the_chat_goes_on(root: Path) -> None:
    with chat(root) as terminal:
        terminal.type(f"{PASTE[0]}{'word ' * 40_000}{PASTE[1]}\n")
        terminal.expect("The message has about", 60)
        terminal.expect("> ")
        terminal.type("hello\n")
        terminal.expect("heard 5 ")
    assert said(root) == ["hello"]


def test_commands_are_answered_while_the_agent_asks(root: Path) -> None:
    with chat(root) as terminal:
        terminal.type("ask me\n")
        terminal.expect("Which one?")
        terminal.expect("which> ")
        terminal.type("/help\n")
        terminal.expect("/skills  the skills")
        terminal.expect("which> ")
        terminal.type("/cost\n")
        terminal.expect("USD")
        terminal.expect("which> ")
        terminal.type("/etc/hosts\n")
        terminal.expect("It returned /etc/hosts")
        terminal.expect("> ")
        terminal.type("ask again\n")
        terminal.expect("which> ")
        terminal.type("/exit\n")
        assert terminal.ended() == 3


def test_ctrl_c_stops_the_work_and_keeps_what_was_done(root: Path) -> None:
    with chat(root) as terminal:
        terminal.type("hello\n")
        terminal.expect("heard 5")
        terminal.expect("> ")
        begin_work(terminal, root)
        terminal.type(CTRL_C)
        terminal.expect("Stopped; finished actions are not lost.")
        terminal.expect("> ")
        terminal.type("do this instead\n")
        terminal.expect("It returned ")
        terminal.expect("do this instead")
        terminal.expect("> ")
        terminal.type(CTRL_D)
        assert terminal.ended() == 0
    assert (root / "log").read_text() == "once\n"
    assert len(list((root / "runs").glob("*/events.jsonl"))) == 1


def test_ctrl_c_at_a_prompt_drops_the_line_and_nothing_else(root: Path) -> None:
    with chat(root) as terminal:
        terminal.type("drop this" + CTRL_C)
        terminal.expect("^C")
        terminal.expect("/exit or Ctrl+D leaves.")
        terminal.expect("> ")
        terminal.type("keep this\n")
        terminal.expect("heard 9")
        terminal.expect("> ")
        terminal.type("ask me\n")
        terminal.expect("which> ")
        terminal.type(CTRL_C)
        terminal.expect("Stopped; finished actions are not lost.")
        terminal.expect("> ")
        terminal.type("\n")
        terminal.expect("which> ")
        terminal.type("this\n")
        terminal.expect("It returned this")
    assert "drop this" not in said(root)


def test_odd_bytes_are_taken(root: Path) -> None:
    with chat(root) as terminal:
        terminal.type(b"bad \xff\xfe byte and \x16\x1b[31m escape\n")
        terminal.expect("heard ")
        terminal.expect("> ")
        terminal.type(CTRL_D)
        assert terminal.ended() == 0
    [message] = said(root)
    assert message.startswith("bad ") and "\x1b" not in message


def test_marks_in_an_answer_do_not_reach_the_terminal(root: Path) -> None:
    (root / "odd.json").write_text(json.dumps(["a\u202egnp.exe \x1b]0;title\x07 \x9b31m b", {"calls": []}]))
    with chat(root, model="odd.json") as terminal:
        terminal.type("hello\n")
        terminal.expect("gnp.exe")
        terminal.expect("> ")
        printed = terminal.raw.partition(b"hello")[2]
    assert "\u202e".encode() not in printed and b"\x1b]0;" not in printed and "\x9b".encode() not in printed


@pytest.mark.parametrize("kind", ["dumb", "xterm-256color"])
def test_lines_that_come_at_once_without_marks_of_a_paste_are_all_taken(kind: str, root: Path) -> None:
    code = "from fireswarm.cli import agent_command; agent_command()"
    command = [sys.executable, "-c", code, "chat", "--script", "model.py:answer"]
    with Terminal(command, root, environment(root), kind=kind) as terminal:
        terminal.expect("> ")
        terminal.type("one\ntwo\nthree\n")
        terminal.expect("heard 3 characters")
        terminal.expect("> ")
        terminal.type(CTRL_D)
        assert terminal.ended() == 0
    assert [*said(root), *steering(root)] == ["one", "two\nthree"]


def test_question_is_answered_at_a_terminal_while_a_file_gets_the_answer(root: Path) -> None:
    code = "from fireswarm.cli import agent_command; agent_command()"
    program = f"{sys.executable} -c '{code}' run 'ask me' --script model.py:answer > answer.md"
    with Terminal(["/bin/sh", "-c", program], root, environment(root)) as terminal:
        terminal.expect("which> ")
        terminal.type("ths\x1b[Di\n")  # back by one, and the letter that is missing
        terminal.process.wait(30)
    assert "It returned this" in (root / "answer.md").read_text()


def test_history_that_is_damaged_is_read_as_far_as_possible(root: Path) -> None:
    path = kept(root) / "chats" / "history.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(b'"good"\n{}\n\xff\n[1]\n"' + b"x" * 100 + b"\n" + b"[" * 5_000 + b"\n")
    path.chmod(0o644)
    with chat(root) as terminal:
        terminal.type(UP + "\n")
        terminal.expect("heard 4 ")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_history_follows_no_link_and_opens_no_pipe(root: Path) -> None:
    path = kept(root) / "chats" / "history.jsonl"
    path.parent.mkdir(parents=True)
    (root / "victim").write_text("kept\n")
    path.symlink_to(root / "victim")
    with chat(root) as terminal:
        terminal.type("hello\n")
        terminal.expect("heard 5")
    assert (root / "victim").read_text() == "kept\n"
    path.unlink()
    os.mkfifo(path)
    with chat(root, "--session", "another") as terminal:
        terminal.type("hello\n")
        terminal.expect("heard 5")


@pytest.mark.parametrize(("given", "answers"), [("hello\n/exit\n", 1), ("", 0), ("a\nb\n", 2)])
def test_chat_reads_a_pipe_to_its_end(root: Path, given: str, answers: int) -> None:
    command = [sys.executable, "-c", CHAT]
    ran = subprocess.run(
        command, cwd=root, env=environment(root), input=given, capture_output=True, text=True, timeout=60
    )
    assert (ran.returncode, "Traceback" in ran.stderr) == (0, False), ran.stderr
    assert ran.stdout.count("heard ") == answers


def test_chat_whose_input_is_closed_ends(root: Path) -> None:
    command = ["/bin/sh", "-c", 'exec "$@" <&-', "sh", sys.executable, "-c", CHAT]
    ran = subprocess.run(command, cwd=root, env=environment(root), capture_output=True, text=True, timeout=60)
    assert (ran.returncode, "Traceback" in ran.stderr) == (0, False), ran.stderr


@pytest.mark.parametrize("place", ["first prompt", "next prompt", "after work was stopped", "during the work"])
def test_sigterm_ends_the_chat_and_leaves_the_terminal_as_it_was(root: Path, place: str) -> None:
    with chat(root) as terminal:
        if place == "next prompt":
            terminal.type("hello\n")
            terminal.expect("heard 5")
            terminal.expect("> ")
        elif place == "after work was stopped":
            terminal.type("work\n")
            terminal.expect("I begin.")
            terminal.type(CTRL_C)
            terminal.expect("Stopped; finished actions are not lost.")
            terminal.expect("> ")
        elif place == "during the work":
            terminal.type("work\n")
            terminal.expect("I begin.")
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.ended() == 130
        edits_and_shows = termios.ICANON | termios.ECHO
        assert termios.tcgetattr(terminal.master)[3] & edits_and_shows == edits_and_shows


def test_file_gets_the_plain_answer_while_the_terminal_shows_the_work(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    long = " ".join(["word"] * 60)
    script(root, {"text": "I look.", "calls": [{"name": "list_files", "input": {}}]}, f"# Done\n\n- **{long}**")
    code = "from fireswarm.cli import agent_command; agent_command()"
    program = f"{sys.executable} -c '{code}' run 'greet Ada' --script answers.json > answer.md"
    with Terminal(["/bin/sh", "-c", program], root, environment(root)) as terminal:
        terminal.expect("I look.")
        terminal.expect("list_files")
        terminal.expect("run 2")
        terminal.process.wait(30)
    assert (root / "answer.md").read_text() == f"# Done\n\n- **{long}**\n"
