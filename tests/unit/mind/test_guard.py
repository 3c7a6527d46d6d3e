"""The profiles read_only and demo_safe: reading commands may run, and no spelling of a writing command passes."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from fireswarm.contracts.skills.tool import Tool
from fireswarm.contracts.swarm.task import Constraints
from fireswarm.mind.guard import READERS, profile_of, refuse_command, refuse_tool
from fireswarm.skills.packs.catalog import Skill

READING = [
    "ls -la", "cat a.md b.md", "grep -rn 'foo$' src", 'grep -c "x|y" a', "find . -name '*.py' -newer a",
    r"find . \( -name a -o -name b \)", "find . ! -name x", "git status", "git log --oneline -5", "git diff HEAD~1",
    "git grep -n foo", "git branch", "wc -l *.md", "cat *", "sort -k2 a | uniq -c | head -3", "sort a 2>/dev/null",
    "ls 2>&1 | wc -l", "echo 'a; rm b'", 'echo "it\'s \\"fine\\""', "cat a && ls || pwd; whoami", "date -u +%F",
    "tree -L 2", "jq '.a' x.json", "uniq a", "echo 5$ a", "test -f a", "printf '%s' a", "rg -n foo", "cat a >/dev/null",
    "stat -c %s a", "du -sh .", "cut -d: -f1 a", "sort --key=2 a", "git log --author=Otto",
]  # fmt: skip

WRITING = [
    # programs that write, and unknown programs
    "rm a", "touch a", "tee a", "python x.py", "sh x.sh", "./ls", "/tmp/ls a", "xargs rm", "awk 'BEGIN{}'",
    "sed -i s/a/b/ x",
    "curl x", "eval ls", "exec ls", "command rm a", "env rm a", "nohup rm a", "time rm a", "! rm a", "",  "   ",
    # more commands on the line
    "ls; rm a", "ls && rm a", "ls || rm a", "ls | tee a", "ls & rm a", "ls |& tee a", "ls\nrm a", "ls\rrm a",
    # substitutions
    "echo $(rm a)", "echo `rm a`", 'echo "$(rm a)"', "cat <(rm a)", "ls >(rm a)", "echo ${x:=$(rm a)}", "echo $[1]",
    "printf -v 'a[$(rm b)]' 1", r"test -v a[\$\(rm b\)]", "test -v 'a[$''(rm b)]'", "test -R x",
    # quotes that others read differently
    r"echo $'\'' ; rm a #'", r"test -v $'a[\x24(rm b)]'", 'echo $"x"', "echo 'x", 'echo "x', "echo x\\",
    "ls #'\nrm a #'",
    # redirections and jobs
    "ls > a", "ls >> a", "ls 2> a", "ls &> a", "ls >| a", "cat < a > b", "ls >& a", "ls >/dev/null2", "ls &", "(ls)",
    "{ ls; }", "cat <<x",
    # assignments and variables
    "PATH=. ls", "X=1", "ls $X", "sort $_ a", "echo -oa; sort $_ b", "echo ${X:=-oa}; sort $X b",
    "printf -v PATH .; ls",
    'sort "$X" a', "$X", "cat ~ $1",
    # braces and patterns that become options
    "uniq {a,b}", "sort {-oa,b}", "sort {-,}-output=x", "sort *", "sort ?oa b", "find * -name x", "find [-]delete",
    "git diff *", "uniq *", "uniq a*", "printf * x", "rg *",
    # options that write or run something
    "sort -o a b", "sort -uo a b", "sort --output=a b", "sort --outp a b", "sort --compress-program=x a", "sort -T x a",
    "sort '-oa' b", r"sort \-oa b", 'sort -"o"a b',
    "find . -delete", "find . -exec rm {} +", "find . -execdir rm x", "find . -fprintf a x", "find . -ok rm x",
    "find . -fls a",
    "uniq a b", "uniq - b", "uniq -- a -b", "uniq -c a b", "date -s 2020-01-01", "date 01010000", "tree -o a",
    "tree -ao a",
    "tree -R -L 1 -H .", "file -C -m a", "file -bC", "file --comp", "rg --pre x y", "rg --pre=x y",
    "diff --output=a b c",
    "git", "git commit -m x", "git -c core.pager=x log", "git --exec-path=. log", "git -C x status",
    "git diff --output=a",
    "git diff --outp=a", "git log --ext-diff", "git show --textconv", "git grep -O x", "git grep -iOsh x",
    "git grep --open-files-in-pager=sh x", "git grep --open=sh x", "git branch -D x", "git branch x", "git stash",
    "git checkout .", "git 'checkout' .",
]  # fmt: skip


@pytest.fixture
def skill(tmp_path: Path) -> Skill:
    folder = tmp_path / "skills" / "tidy"
    (folder / "scripts").mkdir(parents=True)
    (folder / "scripts" / "tidy.py").write_text("print('tidy')")
    (folder / "scripts" / "cat").write_text("")
    return Skill("tidy", "Tidies.", folder)


@pytest.mark.parametrize("command", READING)
@pytest.mark.parametrize("profile", ["read_only", "demo_safe"])
def test_read_only_command_may_run(command: str, profile: str, tmp_path: Path) -> None:
    assert refuse_command(command, profile, None, tmp_path) == ""


@pytest.mark.parametrize("command", WRITING)
@pytest.mark.parametrize("profile", ["read_only", "demo_safe"])
def test_writing_command_is_refused_with_the_reason(command: str, profile: str, tmp_path: Path) -> None:
    assert refuse_command(command, profile, None, tmp_path).startswith(f"the task is {profile}")
    assert refuse_command(command, "permissive", None, tmp_path) == ""


PROGRAMS = [
    "rm",
    "touch",
    "tee",
    "cp",
    "mv",
    "dd",
    "python3",
    "bash",
    "sh",
    "sed",
    "awk",
    "curl",
    "git push",
    "xargs rm",
]
WRAPPED = st.sampled_from(
    ["{}", " {}", "ls; {}", "ls && {}", "ls | {}", "ls || {}", "ls & {}", "ls\n{}", "echo $({})", "echo `{}`",
     'echo "$({})"', "({})", "{{ {}; }}", "A=1 {}", "cat <({})", "if true; then {}; fi", "! {}", "eval '{}'",
     "ls 2>&1 | {}", "true;{}", "true&&{}", "ls >/dev/null; {}", "\\{}", "'{}'", "echo x; {} # y", "time {}",
     "ls -la\t;\t{}"]
)  # fmt: skip


@settings(deadline=None)
@given(WRAPPED, st.sampled_from(PROGRAMS), st.text(alphabet="ab-./ '\"*$\\", max_size=12))
def test_command_with_a_writing_program_is_refused_in_any_position(wrapped: str, program: str, rest: str) -> None:
    line = wrapped.format(f"{program} {rest}")
    assert refuse_command(line, "read_only", None, Path("/")) != ""


PIECES = st.sampled_from(
    ["cat", "sort", "uniq", "printf", "test", "a", "b", "-o", "-oa", "--output=a", "'", '"', "\\", "$'", "$", "x",
     ";", "&&",
     "|", "#", ">", "<", "*", "{a,b}", "touch p", "=", "/dev/null", "2>&1", "-", "--", "$_", "-v", "-d", "~"]
)  # fmt: skip


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(
    program=st.sampled_from(["sort", "uniq", "cat", "echo", "printf", "test", "find"]),
    parts=st.lists(st.tuples(st.sampled_from(["", " "]), PIECES), max_size=6),
)
def test_accepted_command_changes_no_files_in_bash(
    program: str, parts: list[tuple[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    line = f"{program} " + "".join(gap + part for gap, part in parts)
    assume(refuse_command(line, "read_only", None, Path("/")) == "")
    folder = tmp_path_factory.getbasetemp() / "guarded"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name in ("a", "b", "-oc"):
        (folder / name).write_text("2\n1\n")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    subprocess.run(
        ["/bin/bash", "-c", line], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False
    )
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before, line


@settings(deadline=None)
@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=4))
def test_quoted_arguments_of_a_reader_are_not_treated_as_commands(words: list[str]) -> None:
    line = "cat " + " ".join(shlex.quote(word) for word in words)
    assume(not any(mark in line for mark in ("$(", "`", "\n", "\r")))
    assert refuse_command(line, "read_only", None, Path("/")) == ""


def test_readers_contain_no_writing_programs() -> None:
    assert not READERS & {
        "tee",
        "cp",
        "mv",
        "rm",
        "dd",
        "sed",
        "awk",
        "xargs",
        "env",
        "sh",
        "bash",
        "python",
        "perl",
        "ln",
    }


@pytest.mark.parametrize(
    ("constraints", "profile", "found"),
    [
        ({}, "permissive", "permissive"), ({"read_only": True}, "permissive", "read_only"),
        ({"demo_safe": True}, "permissive", "demo_safe"), ({"demo_safe": True}, "read_only", "read_only"),
        ({"read_only": True, "demo_safe": True}, "demo_safe", "read_only"), ({}, "demo_safe", "demo_safe"),
    ],
)  # fmt: skip
def test_stricter_profile_of_task_and_runtime_applies(constraints: dict[str, bool], profile: str, found: str) -> None:
    assert profile_of(Constraints.model_validate(constraints), profile) == found


def test_demo_safe_allows_only_the_selected_skills_scripts(skill: Skill, tmp_path: Path) -> None:
    scripts = skill.folder / "scripts"

    def refused(command: str, cwd: Path = tmp_path, profile: str = "demo_safe") -> bool:
        return refuse_command(command, profile, skill, cwd) != ""

    own = scripts / "tidy.py"
    assert not refused(f"python {own} -x")
    assert not refused(f"python3 {own} | head")
    assert not refused(str(own))
    assert not refused("python scripts/tidy.py", skill.folder)
    assert not refused("python tidy.py", scripts)
    assert refused(f"python {own}", profile="read_only")
    assert refused(f"python -c {own}")
    assert refused(f"perl {own}")
    assert refused(f"PYTHONPATH=. python {own}")
    assert refused(f"python {scripts}/../SKILL.md")
    assert refused(f"python {scripts}/none.py")
    assert refused("tidy.py", scripts)  # a bare name is looked for along PATH
    # a file of the same name in the workspace is not the skill's script, and a program called python is not Python
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "tidy.py").write_text("print('mine')")
    (tmp_path / "python").write_text("")
    assert refused("python scripts/tidy.py")
    assert refused(f"./python {own}")
    (tmp_path / "link.py").symlink_to(own)
    (scripts / "out.py").symlink_to(tmp_path / "scripts" / "tidy.py")
    assert not refused("python link.py")
    assert refused(f"python {scripts / 'out.py'}")


def test_allowed_tools_apply_in_every_profile(tmp_path: Path) -> None:
    limited = Skill("x", "x", tmp_path, allowed_tools=("Bash(git:*)", "Read"))
    assert refuse_command("git commit", "permissive", limited, tmp_path) == ""
    assert "not one of the skill's allowed tools" in refuse_command("rm a", "permissive", limited, tmp_path)
    assert "allowed tools" in refuse_command("git log $(rm a)", "permissive", limited, tmp_path)
    assert refuse_command("git commit", "read_only", limited, tmp_path).startswith("the task is read_only")


async def nothing(_given: object) -> None: ...


def test_writing_tool_is_refused_to_a_read_only_task(tmp_path: Path) -> None:
    writes = Tool("put", "", {}, nothing, writes=True)
    reads = Tool("read_file", "", {}, nothing, spec_name="Read")
    assert refuse_tool(writes, {}, "permissive", None) == ""
    for profile in ("read_only", "demo_safe"):
        assert refuse_tool(writes, {}, profile, None) == f"the task is {profile}: put writes and is not allowed"
        assert refuse_tool(reads, {}, profile, None) == ""
    limited = Skill("x", "x", tmp_path, allowed_tools=("Read(docs/**)",))
    assert refuse_tool(reads, {"path": "docs/a.md"}, "permissive", limited) == ""
    assert "is not allowed with" in refuse_tool(reads, {"path": "src/a.md"}, "permissive", limited)
    assert "not one of" in refuse_tool(writes, {}, "permissive", limited)
