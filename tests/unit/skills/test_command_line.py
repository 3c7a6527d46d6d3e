"""The reader of shell lines compared with bash: it splits lines as bash does and refuses unsupported syntax."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fireswarm.skills.command_line import Unreadable, Word, read_command_line


@given(st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=5))
def test_quoted_words_are_read_unchanged(words: list[str]) -> None:
    read = read_command_line("git " + " ".join(map(shlex.quote, words)))
    assert read.commands == [[Word("git"), *map(Word, words)]]


SYNTAX_ERROR = 2
"""Bash's exit code for a line that it does not run, such as ``a ;; b``."""

PIECES = (*"ab-$'\"\\ #=~{}*<2", ";say ", "\nsay ", "; ;", " 'a b' ", '"a\\"b"', " 2>&1", "\\ ", "''", '"$"', "\\\n")


@settings(max_examples=150, deadline=None)
@given(line=st.lists(st.sampled_from(PIECES), max_size=9).map("".join))
def test_reader_finds_the_same_words_as_bash(line: str, empty_folder: Path) -> None:
    """Bash prints the words of each command, one command per line, for lines that contain only words and separators."""
    try:
        read = read_command_line(f"say {line}")
    except Unreadable:
        return
    words = [word for words in read.commands for word in words]
    known = all(words[0].text == "say" for words in read.commands) and set(read.separators) <= {";", "\n"}
    if not known or any(word.expands or word.globbed or set(word.text) & set("*~") for word in words):
        return
    script = f"say() {{ printf '%s\\0' say \"$@\"; printf '\\n\\0'; }}\nsay {line}"
    ran = subprocess.run(["bash", "-c", script], cwd=empty_folder, capture_output=True, text=True, check=False)
    if ran.returncode != SYNTAX_ERROR:
        told = [piece for command in read.commands for piece in (*(word.text for word in command), "\n")]
        assert ran.stdout.split("\0")[:-1] == told


@pytest.fixture(scope="module")
def empty_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("empty")


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("$HOME/x", Word("$HOME/x", "a variable")),
        ('"a $x"', Word("a $x", "a variable")),
        ("'a $x'", Word("a $x")),
        ("{a,b}", Word("{a,b}", "braces")),
        ("*.md", Word("*.md", "", globbed=True)),
        ("a*", Word("a*")),
        ("''*", Word("*", "", globbed=True)),
        ("\\*", Word("*")),
    ],
)
def test_expansions_in_a_word_are_reported(line: str, word: Word) -> None:
    assert read_command_line(line).commands == [[word]]


@pytest.mark.parametrize(
    ("line", "because"),
    [
        ("a $(b)", "a substitution"),
        ("a `b`", "a substitution"),
        ('a "${b}"', "a substitution"),
        ("a > b", "a redirection"),
        ("(a)", "brackets"),
        ("a # b", "a comment"),
        ("a 'b", "an unclosed quote"),
        ('a "b', "an unclosed quote"),
        ("a \\", "a backslash"),
        ("a $'b'", "a quote after"),
        ("a \x07", "a control character"),
    ],
)
def test_unsupported_shell_syntax_is_rejected(line: str, because: str) -> None:
    with pytest.raises(Unreadable, match=because):
        read_command_line(line)


def test_commands_and_separators_are_read() -> None:
    read = read_command_line("ls 2>&1 | wc -l && echo done > /dev/null; true")
    assert [[word.text for word in words] for words in read.commands] == [
        ["ls"],
        ["wc", "-l"],
        ["echo", "done"],
        ["true"],
    ]
    assert read.separators == ["|", "&&", ";"]
