"""Approvals: the question shows the whole call, and an answer holds for exactly that call."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from fireswarm.capabilities.text_diff import text_diff
from fireswarm.contracts.grant import Grant
from fireswarm.contracts.skills.permissions import (
    MAX_NAMED_FILES,
    MAX_RULE_CHARS,
    StricterPermissions,
    lasting_approvals,
)
from fireswarm.contracts.swarm.constraints import Constraints
from fireswarm.mind.approvals import (
    bind_call,
    decision_on,
    parse_word,
    place_of,
    questions_for,
    reason_too_long,
    refusal_reason,
)
from fireswarm.mind.gate import Call, command_call
from fireswarm.redaction import Redactor
from fireswarm.settings.agent import PermissionSettings

CWD = Path("/workspace")


def command(line: str) -> Call:
    return command_call(line, CWD)


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
    place = place_of(action, "0/1.1")
    answered = {place: {"approval": "yes"}}
    assert decision_on(action, place, answered) == {"approval": "yes"}
    for other, step in ((command("git push evil"), "0/1.1"), (action, "0/2.1")):
        assert decision_on(other, place_of(other, step), answered) is None
    changed, later = Call("Write", "a", diff="+1"), Call("Write", "a", diff="+2")
    assert decision_on(later, place_of(later, "0/1.1"), {place_of(changed, "0/1.1"): {"approval": "yes"}}) is None


def test_always_holds_for_the_same_rule_in_later_steps_and_planned_tasks() -> None:
    action = command("git push origin")
    answered = {place_of(action, "0/1.1"): {"approval": "always"}, "0/1.2/other": {"approval": "always"}}
    assert decision_on(action, place_of(action, "0/9.1"), answered) is not None
    assert decision_on(command("git push evil"), place_of(command("git push evil"), "0/9.1"), answered) is None
    assert lasting_approvals(answered) == {place_of(action, "0/1.1"): {"approval": "always"}}
    assert lasting_approvals({place_of(action, "0/1.1"): {"approval": "yes"}}) == {}


def test_answer_under_a_shorter_hash_of_an_older_version_allows_nothing() -> None:
    action = command("git push origin")
    approve, scope, *step, shown = place_of(action, "0/1.1").split("/")
    assert min(len(scope), len(shown)) >= 32, "a hash of 64 bits has two actions that a stranger can find"
    for word in ("yes", "always"):
        old = {"/".join((approve, scope[:16], *step, shown[:16])): {"approval": word}}
        assert decision_on(action, place_of(action, "0/1.1"), old) is None


@pytest.mark.parametrize("other", [Grant(CWD / "other"), Grant(CWD, role="scout")])
def test_always_holds_for_one_folder_and_one_role_and_says_so(other: Grant) -> None:
    line = Call("Bash", "rm -rf *")
    asked = bind_call(line, Grant(CWD, role="executor"))
    answered = {place_of(asked, "0/1.1"): {"approval": "always"}}
    assert decision_on(asked, place_of(asked, "0/2.1"), answered) is not None
    elsewhere = bind_call(line, other)
    assert decision_on(elsewhere, place_of(elsewhere, "0/2.1"), answered) is None
    [decision, _] = questions_for(asked, "place", "because", str)
    assert decision.approval is not None
    assert (decision.approval.folder, decision.approval.role) == (str(CWD), "executor")


def test_approval_names_the_files_and_ends_when_one_changes(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("echo 1")
    (tmp_path / "data").mkdir()
    (tmp_path / "link.csv").symlink_to("/etc/passwd")
    grant = Grant(tmp_path)
    for call in (
        command_call("env A=1 sh ./run.sh data link.csv /bin/ls", tmp_path),
        Call("mcp__x__send", "", "send", inputs={"files": ["run.sh", "data"]}),
    ):
        (tmp_path / "run.sh").write_text("echo 1")
        before = bind_call(call, grant)
        assert [file.split()[0] for file in before.files] == ["run.sh"]
        answered = {place_of(before, "0/1.1"): {"approval": "yes"}}
        assert decision_on(before, place_of(bind_call(call, grant), "0/1.1"), answered) is not None
        (tmp_path / "run.sh").write_text("echo 2")
        assert decision_on(call, place_of(bind_call(call, grant), "0/1.1"), answered) is None


def test_many_files_are_named_and_all_of_them_count(tmp_path: Path) -> None:
    names = [f"f{number}" for number in range(MAX_NAMED_FILES + 5)]
    for name in names:
        (tmp_path / name).write_text(name)
    call = command_call(f"cat {' '.join(names)}", tmp_path)
    before = bind_call(call, Grant(tmp_path)).files
    assert len(before) == MAX_NAMED_FILES + 1
    (tmp_path / names[-1]).write_text("other")
    assert bind_call(call, Grant(tmp_path)).files != before


def test_a_person_is_shown_the_whole_action_or_cannot_approve_it() -> None:
    assert reason_too_long(command("x" * MAX_RULE_CHARS), str) == ""
    assert "smaller steps" in reason_too_long(command("x" * (MAX_RULE_CHARS + 1)), str)
    hidden = "echo \u200b" + '"' * (MAX_RULE_CHARS - 100) + "; rm -rf ."
    assert len(hidden) < MAX_RULE_CHARS
    assert "smaller steps" in reason_too_long(command(hidden), str), "its escaped form would be cut before its end"
    [decision, _] = questions_for(command("echo a\x1b[2Jrm"), "place", "because", str)
    assert decision.approval is not None and "\x1b" not in decision.approval.shown
    assert "\\u001b" in decision.approval.shown, "what a screen hides is shown escaped"


def test_change_and_input_are_shown_with_the_characters_that_a_screen_hides() -> None:
    content = "safe\x1b]0;\nrm -rf .\x07\u202e\r\n"
    inputs = {"path": "a", "content": content}
    action = Call("Write", "a\x1b[2J", "write_file", inputs=inputs, diff=text_diff("a", "safe\r\n", content))
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
    answers = parse_word(said)
    assert answers is not None and bool(refusal_reason(answers)) is refused
    assert "use uv" in refusal_reason({"approval": "no", "reason": "use uv"})
    assert parse_word(None) is None
