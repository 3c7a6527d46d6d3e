"""Spellings of paths, addresses and commands that a stranger used to evade rules, and lines that no rule is about."""

from __future__ import annotations

from pathlib import Path

import pytest

from fireswarm.capabilities.workspace.place import place_of
from fireswarm.contracts.grant import Grant, Verdict
from fireswarm.contracts.skills.tool import Tool
from fireswarm.errors import InvalidInput
from fireswarm.mind.gate import Allow, Ask, Deny, command_call, decide, read_call, tool_call

CWD = Path("/workspace")


async def nothing(_given: object) -> None: ...


def write_call(path: str) -> object:
    return tool_call(Tool("write_file", "", {}, nothing, writes=True, spec_name="Write"), {"path": path})


@pytest.mark.parametrize(
    "path",
    ["file://secrets/k", "file://file://secrets/k", "x://../secrets/k", "a://b/../../secrets/k", "docs/../secrets/k"],
)
def test_no_prefix_of_a_path_hides_it_from_a_rule(path: str) -> None:
    assert isinstance(decide(read_call(path), Grant(CWD, deny=("Read(secrets/**)",))), Deny)


@pytest.mark.parametrize("path", ["file://file://a", "x://../a", "a://b"])
def test_file_tools_take_no_addresses(path: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    with pytest.raises(InvalidInput, match="is an address"):
        place_of(path, tmp_path, None, hides=None)


def test_allow_rule_is_about_the_place_to_which_a_link_leads(tmp_path: Path) -> None:
    for name in ("docs", "src"):
        (tmp_path / name).mkdir()
    (tmp_path / "docs" / "l").symlink_to("../src")
    (tmp_path / "docs" / "f").symlink_to("../src/f")
    (tmp_path / "docs" / "same").symlink_to("real")
    grant = Grant(tmp_path, allow=("Write(docs/**)",), default=Verdict.DENY)
    allowed = {path for path in ("docs/x", "docs/l/x", "docs/f", "docs/same/x") if _allows(path, grant)}
    assert allowed == {"docs/x", "docs/same/x"}


def test_workspace_behind_a_link_keeps_its_rules(tmp_path: Path) -> None:
    (tmp_path / "real" / "docs").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    assert _allows("docs/x", Grant(tmp_path / "link", allow=("Write(docs/**)",), default=Verdict.DENY))


def _allows(path: str, grant: Grant) -> bool:
    return isinstance(decide(write_call(path), grant), Allow)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "line",
    [
        "r$'m' f",
        "r$@m f",
        "r${z}m f",
        r"env $'\162m' f",
        "/bin/r[m] f",
        "{rm,f}",
        "X=rm;  $X f",
        "X=rm; env $X f",
        "command $X f",
        "! $'rm' f",
        "time $'rm' f",
        "r\\\nm f",
        "echo f|xargs r$'m'",
        r"printf '\162m f'|bash",
        "env -i A=b $X f",
        "sudo -u root $X f",
        "timeout -s KILL 5 $X f",
        "env -u NAME r[m] f",
    ],
)
def test_computed_program_is_a_possible_match(line: str) -> None:
    grant = Grant(CWD, deny=("Bash(rm:*)",))
    assert isinstance(decide(command_call(line, CWD), grant), (Ask, Deny))
    yes = Grant(CWD, deny=("Bash(rm:*)",), yes=True)
    assert isinstance(decide(command_call(line, CWD), yes), Deny), "nobody is asked"


@pytest.mark.parametrize(
    "line",
    ["git -C . push", "git --no-pager push", "git -c a=b push origin", "g=push; git $g", "git {push,origin}"],
)
def test_options_and_computed_words_do_not_hide_a_subcommand(line: str) -> None:
    assert isinstance(decide(command_call(line, CWD), Grant(CWD, ask=("Bash(git push:*)",))), Ask)


@pytest.mark.parametrize(
    "line",
    [
        "ls *.py",
        'echo "$HOME"',
        "for f in *.py; do wc -l $f; done",
        "cat a | sort | head -5",
        "python3 -m pytest tests/[ab]*.py",
        "git log --oneline -5",
        "git commit -m 'push later'",
        "git status",
        "bash run.sh",
        "A=1 make test",
        "grep -rn 'a{2}' src",
    ],
)
def test_ordinary_lines_are_not_possible_matches(line: str) -> None:
    grant = Grant(CWD, deny=("Bash(rm:*)",), ask=("Bash(git push:*)",))
    assert isinstance(decide(command_call(line, CWD), grant), Allow)


@pytest.mark.parametrize(
    "address", ["https://evil.com./x", "https://evil。com/", "https://EVIL.com/", "https://a.evil.com/"]
)
def test_spelling_of_a_host_does_not_hide_it(address: str) -> None:
    fetch = tool_call(Tool("web_fetch", "", {}, nothing, writes=False, spec_name="WebFetch"), {"url": address})
    assert isinstance(decide(fetch, Grant(CWD, deny=("WebFetch(domain:evil.com)",))), Deny)
