"""Rules for commands see through wrappers, quotes and settings: no composition of them hides a denied command."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fireswarm.contracts.grant import Grant, Verdict
from fireswarm.mind.gate import Allow, Ask, Deny, command_call, decide
from fireswarm.skills.command_line import Unreadable, read_command_line
from fireswarm.skills.shell_line import is_literal, read_shell_line

CWD = Path("/workspace")

SPELLINGS = [
    "rm", "'rm'", 'r"m"', r"r\m", "/bin/rm", "/usr/bin/../bin/rm", "r\\\nm", r"$'\162m'", "$'r'm", '$"rm"',
    "$X", "${X}", "r$@m", "r${z}m", "$(echo rm)", "`echo rm`", '"$X"', '"r$z"m', "/bin/r?", "/bin/r[m]",
    "/bin/[!a]m", "/*/rm", "{rm,-f}", "/bin/{r,}m", "~+/../bin/rm", "r\u200bm", "\uff52\uff4d", "r\u00adm",
    "$(printf '%s%s' r m)", "\"$(printf r)\"m",
]  # fmt: skip
"""Words that a shell may turn into ``rm``, and words that look like it."""

WRAPPERS = [
    "env {}", "env -i A=b {}", "env -u NAME {}", "command {}", "builtin command {}", "exec {}",
    "nohup {} &", "nice -n 5 {}", "timeout -s KILL 5 {}", "timeout 5s {}", "stdbuf -oL {}", "setsid {}",
    "ionice -c 3 {}", "sudo -u root {}", "busybox {}", "time -p {}", "! {}", "A=1 B=2 {}",
    "xargs {} < list", "xargs -0 -n 1 {} < list", "ls | xargs -I% {}", "(cd x; {})", "{{ {}; }}",
    "if true; then {}; fi", "while {}; do ls; done", "for f in a; do {}; done", "case a in a) {};; esac",
    "true && {}", "false || {}", "ls | {}", "ls & {}", "ls\n{}", "echo $({})", 'echo "$({})"', "cat <({})",
    "f() {{ {}; }}; f", "find . -exec {} ;", "find . -execdir {} +", "> out {}", "2>&1 {}",
    "cat <<E\nx\nE\n{}", "coproc {}", "watch -n 1 {}", "strace -f {}", "flock lock {}",
    "git bisect run {}", "git submodule foreach {}", "ssh host {}", "echo $(( 1 + 2 )); {}",
    "echo a#b; {}", "# it's\n{}", "gcc -wrapper {} x.c",
]  # fmt: skip

QUOTING_WRAPPERS = [
    "env -S {}", "parallel {} ::: a", "sh -c {}", "bash -ec {}", "bash -x -c {}", "eval {}",
    "trap {} EXIT", "env sh -c {}", "su root -c {}", "script -qc {} /dev/null", "git -c alias.x='!'{} x",
    "git -c core.pager={} log", "git rebase -x {} main", "bash <<< {}", "echo {} | sh",
    "printf %s {} | bash -s", "tar cf a.tar --checkpoint=1 --checkpoint-action=exec={} x", "alias x={}",
    "GIT_PAGER={} git log", "find . -exec sh -c {} ;", "xargs -I% sh -c {}", "python3 -c {}",
    "PROMPT_COMMAND={} bash -i x", "python3 <<< {}", "vim -c '!'{} x", "vi +'!'{}", "less '+!'{} x", "ex x <<< {}",
    "gdb -batch -ex 'shell '{}", "ssh -o ProxyCommand={} host", "socat - EXEC:{}",
    "debugfs -R '!'{}", "bash --rcfile f -i {}", "git grep -O{} x", "wget --use-askpass={} x",
    "rg --pre={} x", "rg --pre {} x .", "git grep -nO{} x", "env -S{}", "su -c{} root", "script -qc{} /dev/null",
    "flock -c{} lock", "tar -I{} -cf a x", "rsync -e{} a b:c", "rsync -e {} a b:c", "rsync --rsh={} a b:c",
    "git rebase -x{} main",
]  # fmt: skip


def _compose(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    plain = st.tuples(st.sampled_from(WRAPPERS), inner).map(lambda given: given[0].format(given[1]))
    quoted = st.tuples(st.sampled_from(QUOTING_WRAPPERS), inner)
    return plain | quoted.map(lambda given: given[0].format(shlex.quote(given[1])))


HIDDEN = st.recursive(st.sampled_from(SPELLINGS).map("{} -rf x".format), _compose, max_leaves=4)
RULES = [
    Grant(CWD, deny=("Bash(rm:*)",)),
    Grant(CWD, ask=("Bash(rm:*)",)),
    Grant(CWD, deny=("Bash(rm:*)",), allow=("Bash",), default=Verdict.ASK),
    Grant(CWD, deny=("Bash(rm:*)",), yes=True),
]


@given(HIDDEN, st.sampled_from(RULES))
def test_no_composition_of_wrappers_and_quotes_allows_a_denied_command(line: str, grant: Grant) -> None:
    assert not isinstance(decide(command_call(line, CWD), grant), Allow)


@pytest.mark.parametrize("wrapper", [*WRAPPERS, *QUOTING_WRAPPERS])
def test_each_wrapper_around_each_spelling_is_asked_for_or_denied(wrapper: str) -> None:
    inner = [f"{word} -rf x" for word in SPELLINGS]
    lines = [wrapper.format(shlex.quote(each) if wrapper in QUOTING_WRAPPERS else each) for each in inner]
    assert [line for line in lines if isinstance(decide(command_call(line, CWD), RULES[0]), Allow)] == []


@pytest.mark.parametrize(
    "line",
    [
        "git -c alias.p=push p", "git config alias.p push; git p", "git -C . -c a.b=c --no-pager push",
        "git --exec-path=x status", "git --git-dir=a --work-tree=b push", "git --config-env=alias.p=X p",
        "GIT_CONFIG_COUNT=1 git p", 'git "$X"', "git pu?h", "echo push | xargs git", "git -c include.path=x p",
        "git -c \"alias.p=$X\" p", "git $(echo push)", "PATH=x git status",
    ],
)  # fmt: skip
def test_settings_and_computed_words_do_not_hide_a_subcommand_of_git(line: str) -> None:
    grant = Grant(CWD, allow=("Bash(git:*)",), deny=("Bash(git push:*)",), default=Verdict.ASK)
    assert isinstance(decide(command_call(line, CWD), grant), (Ask, Deny))


def test_deletion_by_find_is_a_deletion() -> None:
    assert isinstance(decide(command_call("find . -name x -delete", CWD), RULES[0]), Deny)


@pytest.mark.parametrize(
    ("rule", "line", "allowed"),
    [
        ("Bash(env:*)", "env rm x", False),
        ("Bash(find:*)", "find . -exec rm x ;", False),
        ("Bash(find:*)", "find . -name x", True),
        ("Bash(bash:*)", "bash -c 'rm x'", False),
        ("Bash(bash:*)", "bash run.sh", True),
        ("Bash(bash:*)", "echo x | bash", False),
        ("Bash(git:*)", "git -c core.sshCommand='sh -c id' fetch", False),
        ("Bash(git:*)", "git -c user.name=Bob commit", True),
        ("Bash(git:*)", "git bisect run x", False),
        ("Bash(xargs rm:*)", "xargs rm", True),
        ("Bash(uv run pytest:*)", "uv run pytest -q", True),
        ("Bash(uv run:*)", "uv run rm x", False),
        ("Bash(timeout:*)", "timeout 5 rm x", False),
        ("Bash(python3:*)", "python3 -c 'print(1)'", True),
        ("Bash(env:*)", "env $X", False),
        ("Bash(env FOO=1 rm x)", "env FOO=1 rm x", True),
    ],
)
def test_rule_that_allows_a_wrapper_does_not_allow_what_it_runs(rule: str, line: str, allowed: bool) -> None:
    decision = decide(command_call(line, CWD), Grant(CWD, allow=(rule,), default=Verdict.ASK))
    assert isinstance(decision, Allow) == allowed


@pytest.mark.parametrize(
    "line",
    [
        "python x.py > out.txt 2>&1", "cat > a.txt <<'E'\nit's $HOME\nE", "cat <<E > b\nhi $USER\nE\nls",
        "echo $(date)", 'x=$(git rev-parse HEAD); echo "$x"', "if [[ $x == a ]]; then ls; fi",
        "awk -F, 'NR>1 {s+=$2} END{print s}' f", "sed -n '1,10p' x", "sed -i 's/a/the/g' x",
        "find . -name '*.py' | xargs -0 grep -n foo", "find . -exec grep -l x {} +", 'grep -rn "def \\$x" src',
        "curl -s http://x | jq '.a[] | select(.b>1)'", "timeout 60 pytest tests/*.py", "time make -j2",
        "while read l; do echo $l; done < f", "sh -c 'ls'", "echo $((1+2))", 'test -z "$X" || echo no',
        "mkdir -p a/{b,c}", "source .venv/bin/activate && pytest", "PYTHONPATH=src python x.py",
        "git -c user.name=a commit -m x", "echo ünï 👨‍👩‍👧", "diff <(sort a) <(sort b)",
        "function f() { ls; }; f", 'cp x "$OUTPUT_DIR/"', "./run.sh $A", "uv run pytest -q",
    ],
)  # fmt: skip
def test_ordinary_lines_ask_nobody(line: str) -> None:
    grant = Grant(CWD, deny=("Bash(rm:*)",), ask=("Bash(git push:*)",))
    assert isinstance(decide(command_call(line, CWD), grant), Allow)


PIECES = (*"ab-$'\"\\ #=~{}*<2|", ";say ", "\nsay ", " 'a b' ", '"a\\"b"', " 2>&1", "\\ ", "''", '"$"', "\\\n", "&&")


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_both_readers_of_shell_lines_find_the_same_words(line: str) -> None:
    """The strict reader is compared with bash itself. It reads few lines; this one has to read those the same way."""
    try:
        strict = read_command_line(line).commands
    except Unreadable:
        return
    if any(word.expands or word.globbed or set(word.text) & set("*?[~{}") for words in strict for word in words):
        return
    found = [words for words in read_shell_line(line).commands if words]
    assert found == [[word.text for word in words] for words in strict]
    assert all(is_literal(word) for words in found for word in words)


@given(st.text(max_size=80), st.text(max_size=20))
def test_any_line_and_any_rule_can_be_decided(line: str, pattern: str) -> None:
    rules = (f"Bash({pattern})",)
    for grant in (Grant(CWD, allow=rules, default=Verdict.ASK), Grant(CWD, deny=rules)):
        assert decide(command_call(line, CWD), grant)
