"""Lines typed in a chat while the agent works, before a question, and before Ctrl+C."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from tests.integration.test_chat_at_terminal import begin_work, chat, root, steering
from tests.support.terminal import CTRL_C, CTRL_D

__all__ = ["root"]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudoterminal")


def test_enter_after_ctrl_c_goes_on_with_the_work(root: Path) -> None:
    with chat(root) as terminal:
        begin_work(terminal, root)
        terminal.type(CTRL_C)
        terminal.expect("Stopped; finished actions are not lost.")
        terminal.expect("> ")
        terminal.type("\n")
        terminal.expect("It returned ")
    assert (root / "log").read_text() == "once\ntwice\n"


def test_line_typed_during_the_work_is_told_before_the_next_answer(root: Path) -> None:
    with chat(root) as terminal:
        terminal.type("wait\n")
        terminal.expect("I wait.")
        while not (root / "log").exists():
            terminal.type("")
        terminal.type("and this too\n\n/cost\n")
        terminal.expect("/cost")
        (root / "go").touch()
        terminal.expect("USD")
        terminal.expect("gets this before its next answer")
        terminal.expect("It returned ")
        terminal.expect("and this too")
        terminal.expect("> ")
        terminal.type("ask me\n")
        terminal.expect("which> ")


def test_line_typed_before_a_question_does_not_answer_it(root: Path) -> None:
    with chat(root) as terminal:
        terminal.type("think\n")
        while not (root / "thinks").exists():
            terminal.type("")
        terminal.type("yes, and also that\n")
        terminal.expect("yes, and also that")
        (root / "go").touch()
        terminal.expect("which> ")
        terminal.type("this\n")
        terminal.expect("It returned this yes, and also that")


def test_half_a_line_typed_before_ctrl_c_is_kept(root: Path) -> None:
    with chat(root) as terminal:
        begin_work(terminal, root)
        terminal.type("no, do th")
        terminal.expect("no, do th")
        terminal.type(CTRL_C)
        terminal.expect("Stopped; finished actions are not lost.")
        terminal.expect("> ")
        terminal.type("at\n")
        terminal.expect("It returned ")
        terminal.expect("no, do that")


def test_signal_at_a_question_stops_the_work_as_ctrl_c_does(root: Path) -> None:
    with chat(root) as terminal:
        terminal.type("ask me\n")
        terminal.expect("which> ")
        terminal.process.send_signal(signal.SIGINT)
        terminal.expect("Stopped; finished actions are not lost.")
        terminal.expect("> ")
        terminal.type("\n")
        terminal.expect("which> ")
        terminal.type("this\n")
        terminal.expect("It returned this")


def test_exit_typed_during_the_work_leaves_after_the_answer(root: Path) -> None:
    with chat(root) as terminal:
        terminal.type("wait\n")
        terminal.expect("I wait.")
        terminal.type("/exit\n")
        terminal.expect("/exit")
        (root / "go").touch()
        terminal.expect("It returned ")
        assert terminal.ended() == 0


@pytest.mark.parametrize("typed", ["\n", "\n\n", "no, stop\n"])
def test_key_pressed_before_ctrl_c_does_not_go_on_with_the_work(root: Path, typed: str) -> None:
    with chat(root) as terminal:
        begin_work(terminal, root)
        terminal.type(typed)
        terminal.type(CTRL_C)
        terminal.expect("Stopped; finished actions are not lost.")
        terminal.expect("> " + typed.strip())
        terminal.type("\x15and now this\n")  # Ctrl+U
        terminal.expect("It returned ")
        answer = terminal.expect("> ")
    assert "and now this" in answer and "no, stop" not in answer
    assert (root / "log").read_text() == "once\n"


def test_line_begun_before_an_approval_does_not_answer_it(root: Path) -> None:
    with chat(root, approves=False) as terminal:
        terminal.type("think of work\n")
        while not (root / "thinks").exists():
            terminal.type("")
        terminal.type("yes, but first tell me ")
        terminal.expect("yes, but first tell me ")
        (root / "go").touch()
        terminal.expect("reason> ")
        terminal.type("why you do it\n")
        terminal.expect("reason> ")
        terminal.type("yes but only now\n")
        terminal.expect("reason> ")
        terminal.type("no: too early\n")
        terminal.expect("It returned ")
        terminal.expect("> yes, but first tell me ")  # the line goes on at the next prompt
    assert not (root / "log").exists()


def test_chat_that_was_left_in_its_work_asks_before_it_goes_on(root: Path) -> None:
    with chat(root) as terminal:
        begin_work(terminal, root)
        terminal.type(CTRL_C)
        terminal.expect("Stopped; finished actions are not lost.")
        terminal.expect("> ")
        terminal.type(CTRL_D)
        assert terminal.ended() == 130
    with chat(root, columns=120) as terminal:
        assert "Stopped; finished actions are not lost." in terminal.screen
        terminal.type("leave it\n")
        terminal.expect("It returned ")
        assert "leave it" in terminal.expect("> ")
        terminal.type(CTRL_D)
        assert terminal.ended() == 0
    assert (root / "log").read_text() == "once\n"
    with chat(root, columns=120) as terminal:
        assert "Stopped" not in terminal.screen
        terminal.type("hello\n")
        terminal.expect("heard 5")


def test_lines_typed_during_the_work_are_told_as_they_are(root: Path) -> None:
    with chat(root) as terminal:
        terminal.type("wait\n")
        terminal.expect("I wait.")
        terminal.type("/usr\n\n/exit\nand \\\nthat\n")
        terminal.expect("that")
        terminal.type("x" * 5_000 + "\n")
        terminal.expect("x" * 1_000)
        (root / "go").touch()
        terminal.expect("The terminal truncated that line")
        terminal.expect("It returned ")
        terminal.expect("> ")
        terminal.type(CTRL_D)
        assert terminal.ended() == 0
    assert steering(root) == ["/usr\n\n/exit\nand \nthat"]


def test_line_before_exit_is_answered(root: Path) -> None:
    with chat(root) as terminal:
        terminal.type("think\n")
        while not (root / "thinks").exists():
            terminal.type("")
        terminal.type("hello\n/exit\n")
        terminal.expect("/exit")
        (root / "go").touch()
        terminal.expect("which> ")
        terminal.type("this\n")
        terminal.expect("It returned this hello")
        assert terminal.ended() == 0
