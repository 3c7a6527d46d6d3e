"""allowed-tools: calls that a rule allows, and shell lines that try to hide other commands."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fireswarm.skills.allowed_tools import denial_reason

GIT = ("Bash(git:*)", "Bash(ls -la)", "Bash(npm run *)", "Read")


def test_empty_list_and_star_allow_everything() -> None:
    assert denial_reason((), "Bash", "rm -rf /") is None
    assert denial_reason(("*",), "mcp__x__y") is None
    assert denial_reason(("Bash",), "run_command", "a; b > c $(d)") is None
    assert denial_reason(("Bash(*)",), "bash", "x") is None


@pytest.mark.parametrize(
    "command",
    [
        "git status", "git", "  git log --oneline  ", "git log | git apply && git diff; git show || git gc & git fsck",
        "ls -la", "npm run build -- --fast", "git log 2>&1", "git log >/dev/null", "git log 2> /dev/null | git x",
        "git commit -m 'a; rm -rf / $(x)'", 'git commit -m "it\'s \\"fine\\" $HOME"', "git log\ngit diff", "'git' log",
        "git log --grep=a#b", "git show HEAD~1:x.py", "git log --format=%h",
    ],
)  # fmt: skip
def test_commands_named_by_the_rules_are_allowed(command: str) -> None:
    assert denial_reason(GIT, "Bash", command) is None


@pytest.mark.parametrize(
    ("command", "because"),
    [
        ("rm -rf /", "'rm -rf /' is not one of"), ("gitk", "'gitk'"), ("ls", "'ls'"), ("ls -la /etc", "'ls -la /etc'"),
        ("npm", "'npm'"), ("git status; rm x", "'rm x'"), ("git status && rm x", "'rm x'"), ("git x | sh", "'sh'"),
        ("git x\nrm y", "'rm y'"), ("git x & rm y", "'rm y'"), ("git $(rm x)", "substitution"),
        ("git `rm x`", "substitution"),
        ('git "$(rm x)"', "substitution"), ('git "`rm x`"', "substitution"), ("git ${x:-$(y)}", "substitution"),
        ("git <(rm x)", "redirection"), ("git log > ~/.bashrc", "redirection"), ("git log >> x", "redirection"),
        ("git log &> x", "redirection"), ("git log 2>x", "redirection"), ("git apply < x", "redirection"),
        ("git log >/dev/null2", "redirection"), ("git log >&2x", "redirection"), ("(git log)", "brackets"),
        ("f() { rm x; }", "brackets"), ("{ git log; }", "shell word"), ("if git x", "shell word"),
        ("eval git", "shell word"),
        ("GIT_PAGER=rm git log", "assignment"), ("PATH+=x git log", "assignment"), ("git log 'x", "unclosed"),
        ('git log "x', "unclosed"), ("git log \\", "backslash"), ("git log \\\nrm", "backslash"),
        ("git log # it's\nrm x # it's", "comment"), ("git $'\\x3b' rm", "quote after"), ('git $"x"', "quote after"),
        ("git\x00rm", "control"), ("git\rrm", "control"), ("", "the command is empty"), (" ; ", "the command is empty"),
        ("/usr/bin/git log", "'/usr/bin/git log'"), ("\u00a0git log", "control"),
    ],
)  # fmt: skip
def test_command_that_is_not_listed_is_refused_with_the_reason(command: str, because: str) -> None:
    refusal = denial_reason(GIT, "bash", command)
    assert refusal is not None
    assert because in refusal


@given(
    st.lists(st.sampled_from(["git", "log", "rm", ";", "&&", "|", "\n", "'", '"', "\\", "$(", ")", ">", "#", " ", "`"]))
)
def test_combined_shell_characters_never_allow_another_command(parts: list[str]) -> None:
    """An allowed line contains only git commands according to shlex as well."""
    line = "".join(parts)
    if denial_reason(("Bash(git:*)",), "Bash", line) is None:
        lexer = shlex.shlex(line.replace("\n", " ; "), posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        lexer.commenters = ""
        words = list(lexer)
        starts = [word for before, word in zip([";", *words], words, strict=False) if set(before) <= set(";&|")]
        assert all(word == "git" or set(word) <= set(";&|") for word in starts), words


@given(st.text(max_size=60), st.text(max_size=30))
def test_any_rule_and_any_command_can_be_checked(command: str, rule: str) -> None:
    for tool in ("Bash", "Read", "WebFetch"):
        assert denial_reason((rule, f"{tool}({rule})"), tool, command) != ""


@pytest.mark.parametrize(
    ("rule", "tool", "argument", "allowed"),
    [
        ("Read", "read", "/any/where", True),
        ("Read", "Write", "x", False),
        ("Read(docs/**)", "Read", "docs/a/b.md", True),
        ("Read(docs/**)", "Read", "./docs/a.md", True),
        ("Read(docs/**)", "Read", "docs/../secret", False),
        ("Read(docs/*.md)", "Read", "docs/a/b.md", False),
        ("Read(docs/**/?.md)", "Read", "docs/x/y/b.md", True),
        ("Read(docs/**)", "Read", "", False),
        ("mcp__github", "mcp__github__search", "", True),
        ("mcp__github", "mcp__github2__search", "", False),
        ("mcp__github__search", "mcp__github__search", "", True),
        ("mcp__github__search", "mcp__github__delete", "", False),
        ("mcp__github__get_*", "mcp__github__get_issue", "", True),
        ("WebFetch(domain:x.org)", "WebFetch", "https://api.x.org/a", True),
        ("WebFetch(domain:x.org)", "WebFetch", "https://evilx.org", False),
        ("WebFetch(domain:x.org)", "WebFetch", "https://x.org@evil.com/", False),
        ("WebFetch(domain:x.org)", "WebFetch", "file:///x.org", False),
        ("WebFetch(domain:x.org)", "WebFetch", "https://[x.org", False),
        ("Bash(git", "Bash", "git log", False),
        ("Bash(:*)", "Bash", "git log", True),
        ("Bash(  )", "Bash", "git log", False),
    ],
)
def test_rules_match_paths_hosts_and_servers(rule: str, tool: str, argument: str, allowed: bool) -> None:
    assert (denial_reason((rule,), tool, argument) is None) == allowed
