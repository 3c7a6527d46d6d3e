"""Rules decide on commands, tools and skills: deny before ask before allow, and no spelling of a command evades."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fireswarm.capabilities.text_diff import text_diff
from fireswarm.contracts.skills.permissions import MAX_RULE_CHARS, StricterPermissions, lasting_approvals
from fireswarm.contracts.swarm.task import Constraints
from fireswarm.mind.permissions import (
    Action,
    Policy,
    Verdict,
    decision_on,
    input_text,
    policy_of,
    questions_for,
    refusal_reason,
    spoken,
    text_values,
    too_long,
)
from fireswarm.redaction import Redactor
from fireswarm.settings.agent import PermissionSettings

CWD = Path("/workspace")
ALLOW, ASK, DENY = Verdict.ALLOW, Verdict.ASK, Verdict.DENY


def command(line: str, *, changes: bool = True) -> Action:
    return Action("Bash", line, line, CWD, changes=changes)


def tool(name: str, path: str = "", *, changes: bool = True) -> Action:
    return Action(name, path, f"{name} {path}", CWD, changes=changes, others=(path,))


def verdict(action: Action, default: Verdict = ALLOW, **rules: tuple[str, ...]) -> Verdict:
    return Policy(PermissionSettings.model_validate(rules), default=default).judge(action).verdict


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("rm x", DENY),
        ("/bin/rm -rf x", DENY),
        ("ls; rm x", DENY),
        ("find . | xargs rm", DENY),
        ("env A=1 rm x", DENY),
        ("bash -c 'rm x'", DENY),
        ("r''m x", DENY),
        ("r\\m x", DENY),
        ("(rm x)", DENY),
        ("true && { rm x; }", DENY),
        ("`rm x`", DENY),
        ("$(echo r)m x", ASK),
        ("X=rm; $X x", ASK),
        ("eval \"$(printf 'r%s' m)\" x", ASK),
        ("echo cm0geA== | base64 -d | sh", ASK),
        ('A=rm; bash -c "$A x"', ASK),
        ("ls $HOME", ALLOW),
        ("git status", ALLOW),
        ("echo armor", ALLOW),
    ],
)
def test_a_denied_command_is_found_in_every_spelling(line: str, expected: Verdict) -> None:
    assert verdict(command(line), deny=("Bash(rm:*)",)) is expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("secrets/key", DENY),
        ("./secrets/key", DENY),
        ("docs/../secrets/key", DENY),
        ("/workspace/secrets/key", DENY),
        ("file:///workspace/secrets/key", DENY),
        ("docs/key", ALLOW),
    ],
)
def test_a_denied_path_is_found_in_every_spelling(path: str, expected: Verdict) -> None:
    assert verdict(tool("Read", path, changes=False), deny=("Read(secrets/**)",)) is expected


def test_a_link_is_judged_by_what_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "harmless").symlink_to(tmp_path / "secrets")
    reads = Action("Read", "harmless/key", "read", tmp_path, changes=False)
    assert Policy(PermissionSettings(deny=("Read(secrets/**)",))).judge(reads).verdict is DENY


def test_deny_decides_before_ask_and_ask_before_allow() -> None:
    push, rules = command("git push origin"), ("Bash(git push:*)",)
    assert verdict(push, deny=rules, ask=rules, allow=("Bash",)) is DENY
    assert verdict(push, ask=rules, allow=("Bash",)) is ASK
    assert verdict(push, allow=rules, default=ASK) is ALLOW


def test_the_default_decides_on_what_may_change_something_and_reads_are_allowed() -> None:
    for default in Verdict:
        assert verdict(command("make"), default) is default
        assert verdict(command("ls", changes=False), default) is ALLOW
        assert verdict(tool("Read", "a", changes=False), default) is ALLOW


def test_every_command_of_a_line_has_to_be_allowed() -> None:
    allow = ("Bash(git:*)", "Bash(ls)")
    assert verdict(command("git log | ls"), ASK, allow=allow) is ALLOW
    assert verdict(command("git log; curl x"), ASK, allow=allow) is ASK
    assert verdict(command("git log > /etc/x"), ASK, allow=allow) is ASK
    assert verdict(command("git log $(curl x)"), ASK, allow=allow) is ASK


def test_a_rule_with_the_exact_line_allows_it_whatever_it_contains() -> None:
    line = "for f in *.py; do echo $f > out; done"
    assert verdict(command(line), ASK, allow=(f"Bash({line})",)) is ALLOW
    assert verdict(command(f"{line}; curl x"), ASK, allow=(f"Bash({line})",)) is ASK


def test_texts_anywhere_in_an_input_are_judged() -> None:
    moved = {"from": "a", "to": {"paths": ["docs/../secrets/key"]}}
    assert set(text_values(moved)) == {"a", "docs/../secrets/key"}
    action = Action("mcp__files__move", "", "move", CWD, others=text_values(moved))
    assert verdict(action, deny=("mcp__files__move(secrets/**)",)) is DENY


def test_yes_allows_everything_but_what_is_denied() -> None:
    policy = policy_of(PermissionSettings(ask=("Bash(git push:*)",), deny=("Bash(rm:*)",)), ASK, yes=True)
    assert policy.judge(command("git push")).verdict is ALLOW
    assert policy.judge(command("rm x")).verdict is DENY


RULE = st.sampled_from(["Bash", "Bash(rm:*)", "Bash(git push:*)", "Skill(deploy)", "Write(docs/**)"])
RULES = st.lists(RULE, max_size=3).map(tuple)
STRICTER = st.builds(StricterPermissions, ask=RULES, deny=RULES)
ACTION = st.sampled_from(
    [command("rm x"), command("git push"), command("ls"), tool("Write", "docs/a"), tool("Skill", "deploy")]
)
ORDER = [ALLOW, ASK, DENY]


@given(ACTION, RULES, STRICTER, STRICTER, st.sampled_from(ORDER))
def test_further_rules_of_roles_and_tasks_never_loosen(
    action: Action, allow: tuple[str, ...], first: StricterPermissions, second: StricterPermissions, default: Verdict
) -> None:
    settings = PermissionSettings(allow=allow)
    before = policy_of(settings, default, first).judge(action).verdict
    after = policy_of(settings, default, first, second).judge(action).verdict
    assert ORDER.index(after) >= ORDER.index(before)


def test_a_plan_adds_rules_to_those_of_its_parent_and_removes_none() -> None:
    parent = Constraints(permissions=StricterPermissions(deny=("Bash(rm:*)",)))
    child = parent.tighten({"permissions": {"ask": ["Bash"], "deny": []}})
    assert child.permissions == StricterPermissions(ask=("Bash",), deny=("Bash(rm:*)",))
    with pytest.raises(ValidationError, match="allow"):
        parent.tighten({"permissions": {"allow": ["Bash"]}})


@pytest.mark.parametrize("rule", ["", "  ", "Bash(git", "(x)", "Bash)"])
def test_a_malformed_rule_is_refused(rule: str) -> None:
    with pytest.raises(ValidationError):
        PermissionSettings(deny=(rule,))


def test_an_answer_holds_for_exactly_the_action_that_was_shown() -> None:
    action = command("git push origin")
    place = action.place("0/1.1")
    answered = {place: {"approval": "yes"}}
    assert decision_on(action, place, answered) == {"approval": "yes"}
    for other, step in ((command("git push evil"), "0/1.1"), (action, "0/2.1")):
        assert decision_on(other, other.place(step), answered) is None
    changed = Action("Write", "a", "write a", CWD, diff="+1")
    later = Action("Write", "a", "write a", CWD, diff="+2")
    assert decision_on(later, later.place("0/1.1"), {changed.place("0/1.1"): {"approval": "yes"}}) is None


def test_always_holds_for_the_same_rule_in_later_steps_and_planned_tasks() -> None:
    action = command("git push origin")
    answered = {action.place("0/1.1"): {"approval": "always"}, "0/1.2/other": {"approval": "always"}}
    assert decision_on(action, action.place("0/9.1"), answered) is not None
    assert decision_on(command("git push evil"), command("git push evil").place("0/9.1"), answered) is None
    assert lasting_approvals(answered) == {action.place("0/1.1"): {"approval": "always"}}
    assert lasting_approvals({action.place("0/1.1"): {"approval": "yes"}}) == {}


def test_a_person_is_shown_the_whole_action_or_cannot_approve_it() -> None:
    assert too_long(command("x" * MAX_RULE_CHARS), str) == ""
    assert "smaller steps" in too_long(command("x" * (MAX_RULE_CHARS + 1)), str)
    hidden = "echo \u200b" + '"' * (MAX_RULE_CHARS - 100) + "; rm -rf ."
    assert len(hidden) < MAX_RULE_CHARS
    assert "smaller steps" in too_long(command(hidden), str), "its escaped form would be cut before its end"
    [decision, _] = questions_for(command("echo a\x1b[2Jrm"), "place", "because", str)
    assert decision.approval is not None and "\x1b" not in decision.approval.shown
    assert "\\u001b" in decision.approval.shown, "what a screen hides is shown escaped"


def test_change_and_input_are_shown_with_the_characters_that_a_screen_hides() -> None:
    content = "safe\x1b]0;\nrm -rf .\x07\u202e\r\n"
    shown = f"write_file {input_text({'path': 'a', 'content': content})}"
    action = Action("Write", "a\x1b[2J", shown, CWD, diff=text_diff("a", "safe\r\n", content))
    [decision, _] = questions_for(action, "place", "because\x1b", Redactor().clean)
    assert decision.approval is not None
    shown = decision.approval
    for text in (shown.shown, shown.diff):
        assert "\\u001b]0;" in text and "rm -rf .\\u0007\\u202e" in text
    assert (shown.rule, shown.because) == ("Write(a\\u001b[2J)", "because\\u001b")


def test_diff_shows_line_ends_only_where_they_differ() -> None:
    assert text_diff("a", "1\r\n2\r\n", "1\r\n3\r\n").splitlines()[-2:] == ["-2", "+3"]
    assert text_diff("a", "1\r\n", "1\n").split("\n")[-2:] == ["-1\r", "+1"]
    assert text_diff("a", None, "1\n\n").split("\n")[-2:] == ["+1", "+"]


@pytest.mark.parametrize(
    ("said", "refused"), [("yes", False), ("Always", False), ("no: use uv", True), ("", True), ("whatever", True)]
)
def test_only_a_clear_yes_allows(said: str, refused: bool) -> None:
    answers = spoken(said)
    assert answers is not None and bool(refusal_reason(answers)) is refused
    assert "use uv" in refusal_reason({"approval": "no", "reason": "use uv"})
    assert spoken(None) is None
