"""The gate decides on commands, tools and skills: no spelling evades a rule, and no restriction makes a call freer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fireswarm.contracts.grant import Grant, Verdict, stricter_profile
from fireswarm.contracts.skills.permissions import StricterPermissions
from fireswarm.contracts.skills.tool import Tool
from fireswarm.contracts.swarm.constraints import Constraints
from fireswarm.mind.gate import (
    Allow,
    Ask,
    Call,
    Deny,
    command_call,
    decide,
    may_change,
    read_call,
    skill_call,
    texts_in,
    tool_call,
)
from fireswarm.skills.packs.catalog import Skill

CWD = Path("/workspace")
ALLOW, ASK, DENY = Verdict.ALLOW, Verdict.ASK, Verdict.DENY
PROFILES = ["permissive", "demo_safe", "read_only"]


async def nothing(_given: object) -> None: ...


def command(line: str) -> Call:
    return command_call(line, CWD)


def tool(name: str, path: str = "", *, writes: bool = True, **more: Any) -> Call:
    return tool_call(Tool(name, "", {}, nothing, writes=writes, **more), {"path": path})


def verdict(call: Call, default: Verdict = ALLOW, **rules: tuple[str, ...]) -> Verdict:
    decision = decide(call, Grant(CWD, default=default, **rules))  # pyright: ignore[reportArgumentType]
    return {Allow: ALLOW, Ask: ASK, Deny: DENY}[type(decision)]


def reason(call: Call, grant: Grant) -> str:
    decision = decide(call, grant)
    return "" if isinstance(decision, Allow) else decision.reason


# ── rules ───────────────────────────────────────────────────────────────────────────────────────────────


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
    assert verdict(read_call(path), deny=("Read(secrets/**)",)) is expected


def test_a_link_is_judged_by_what_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "harmless").symlink_to(tmp_path / "secrets")
    assert isinstance(decide(read_call("harmless/key"), Grant(tmp_path, deny=("Read(secrets/**)",))), Deny)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_default_of_deny_holds_for_commands_in_each_profile(profile: Any) -> None:
    assert isinstance(decide(command("rm x"), Grant(CWD, profile, default=DENY)), Deny)


@pytest.mark.parametrize(
    ("kind", "line", "told"),
    [
        ("ask", "rm x", "the permissions ask for Bash(rm:*)"),
        ("ask", "$(echo r)m x", "it could match the ask rule Bash(rm:*)"),
        ("deny", "rm x", "the permissions deny Bash(rm:*)"),
        ("deny", "$(echo r)m x", "it could match the deny rule Bash(rm:*)"),
    ],
)
def test_a_person_is_told_whether_a_rule_matches_or_could_match(kind: str, line: str, told: str) -> None:
    """With ``yes`` nobody is asked: what could match a deny rule is denied."""
    assert reason(command(line), replace(Grant(CWD, yes=kind == "deny"), **{kind: ("Bash(rm:*)",)})) == told


def test_a_refusal_names_the_tool_as_the_model_called_it() -> None:
    told = reason(tool("put_note", spec_name="Write"), Grant(CWD, "read_only"))
    assert told == "the task is read_only: put_note writes and is not allowed"


def test_deny_decides_before_ask_and_ask_before_allow() -> None:
    push, rules = command("git push origin"), ("Bash(git push:*)",)
    assert verdict(push, deny=rules, ask=rules, allow=("Bash",)) is DENY
    assert verdict(push, ask=rules, allow=("Bash",)) is ASK
    assert verdict(push, allow=rules, default=ASK) is ALLOW


def test_an_ask_rule_lifts_no_denial_by_default() -> None:
    push, rules = command("git push"), ("Bash(git push:*)",)
    assert verdict(push, default=DENY, ask=rules) is DENY
    assert verdict(push, default=DENY, ask=rules, allow=rules) is ASK


def test_a_deny_rule_of_the_role_or_task_binds_where_the_operator_allows() -> None:
    for stricter, expected in (
        (StricterPermissions(deny=("Bash(rm:*)",)), Deny),
        (StricterPermissions(ask=("Bash",)), Ask),
    ):
        grant = Grant(CWD, allow=("Bash(rm:*)",), stricter=stricter)
        assert isinstance(decide(command("rm x"), grant), expected)


def test_the_default_decides_on_what_may_change_something_and_reads_are_allowed() -> None:
    for default in Verdict:
        assert verdict(command("make"), default) is default
        assert verdict(Call("plan", ""), default) is default
        assert verdict(read_call("a"), default) is ALLOW
        expected = Deny if default is DENY else Allow
        assert isinstance(decide(command("ls"), Grant(CWD, "read_only", default=default)), expected)


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
    assert set(texts_in(moved)) == {"a", "docs/../secrets/key"}
    call = tool_call(Tool("mcp__files__move", "", {}, nothing, writes=True), moved)
    assert verdict(call, deny=("mcp__files__move(secrets/**)",)) is DENY


def test_yes_allows_everything_but_what_is_denied() -> None:
    grant = Grant(CWD, ask=("Bash(git push:*)",), deny=("Bash(rm:*)",), default=ASK, yes=True)
    assert isinstance(decide(command("git push"), grant), Allow)
    assert isinstance(decide(command("rm x"), grant), Deny)


# ── profiles and skills ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("constraints", "profile", "expected"),
    [
        ({}, "permissive", "permissive"), ({"read_only": True}, "permissive", "read_only"),
        ({"demo_safe": True}, "permissive", "demo_safe"), ({"demo_safe": True}, "read_only", "read_only"),
        ({"read_only": True, "demo_safe": True}, "demo_safe", "read_only"), ({}, "demo_safe", "demo_safe"),
    ],
)  # fmt: skip
def test_stricter_profile_of_task_and_runtime_applies(
    constraints: dict[str, bool], profile: str, expected: str
) -> None:
    assert stricter_profile(Constraints.model_validate(constraints), profile) == expected


@pytest.mark.parametrize("line", ["ls", "rm -rf .", "python x.py", ""])
def test_profile_decides_whether_a_command_may_write(line: str) -> None:
    assert [may_change(command(line), Grant(CWD, profile)) for profile in PROFILES] == [True, False, False]


def test_command_of_a_read_only_task_is_denied_where_nothing_confines_it() -> None:
    told = reason(command("ls"), Grant(CWD, "read_only", confined=False))
    assert told == "the task is read_only, which requires confined commands, but runtime.confinement is none"
    assert reason(command("echo \0"), Grant(CWD)) == "a command cannot contain zero bytes"


@pytest.fixture
def tidy(tmp_path: Path) -> Skill:
    folder = tmp_path / "skills" / "tidy"
    (folder / "scripts").mkdir(parents=True)
    (folder / "scripts" / "tidy.py").write_text("print('tidy')")
    (folder / "scripts" / "cat").write_text("")
    return Skill("tidy", "Tidies.", folder)


def test_demo_safe_lets_only_the_selected_skills_scripts_write(tidy: Skill, tmp_path: Path) -> None:
    scripts = tidy.folder / "scripts"

    def writes(line: str, cwd: Path = tmp_path, profile: str = "demo_safe") -> bool:
        return may_change(command_call(line, cwd), Grant(tmp_path, profile, skill=tidy))

    own = scripts / "tidy.py"
    assert writes(f"python {own} -x")
    assert writes(f"python3 {own} && {own}")
    assert writes(str(own))
    assert writes("python scripts/tidy.py", tidy.folder)
    assert writes("python tidy.py", scripts)
    assert not writes(f"python {own}", profile="read_only")
    assert not writes(f"python3 {own} | tee x")
    assert not writes(f"python3 {own}; rm x")
    assert not writes(f"python3 {own} > x")
    assert not writes(f"python3 {own} $(rm x)")
    assert not writes(f"python3 {own} `rm x`")
    assert not writes(f"python3 {own}\nrm x")
    assert not writes(f"python3 $X {own}")
    assert not writes(f"python -c {own}")
    assert not writes(f"perl {own}")
    assert not writes(f"PYTHONPATH=. python {own}")
    assert not writes(f"python {scripts}/../SKILL.md")
    assert not writes(f"python {scripts}/none.py")
    assert not writes("tidy.py", scripts)  # a bare name is looked for along PATH
    # a file of the same name in the workspace is not the skill's script, and a program called python is not Python
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "tidy.py").write_text("print('mine')")
    (tmp_path / "python").write_text("")
    assert not writes("python scripts/tidy.py")
    assert not writes(f"./python {own}")
    (tmp_path / "link.py").symlink_to(own)
    (scripts / "out.py").symlink_to(tmp_path / "scripts" / "tidy.py")
    assert writes("python link.py")
    assert not writes(f"python {scripts / 'out.py'}")


def limited(*rules: str) -> Skill:
    return Skill("x", "x", CWD, allowed_tools=rules)


@pytest.mark.parametrize("place", ["named", "skill"])
def test_allowed_tools_of_the_named_and_the_used_skill_bind_commands(place: str) -> None:
    grant = replace(Grant(CWD), **{place: limited("Bash(git:*)", "Read")})
    assert reason(command("git commit"), grant) == ""
    assert "not one of the skill's allowed tools" in reason(command("rm a"), grant)
    assert "allowed tools" in reason(command("git log $(rm a)"), grant)


def test_writing_tool_is_denied_to_a_read_only_task() -> None:
    writes, reads = tool("put"), tool("read_file", "docs/a.md", writes=False, spec_name="Read")
    assert reason(writes, Grant(CWD)) == ""
    for profile in ("read_only", "demo_safe"):
        assert reason(writes, Grant(CWD, profile)) == f"the task is {profile}: put writes and is not allowed"
        assert reason(reads, Grant(CWD, profile)) == ""
    grant = Grant(CWD, skill=limited("Read(docs/**)"))
    assert reason(reads, grant) == ""
    assert "is not allowed with" in reason(tool("read_file", "src/a.md", writes=False, spec_name="Read"), grant)
    assert "not one of" in reason(writes, grant)


def stores(name: str = "a.md", path: str = "") -> Call:
    made = Tool("write_artifact", "", {}, nothing, writes=True, outputs_only=True)
    return tool_call(made, {"name": name} | ({"path": path} if path else {}))


def test_skill_stores_no_file_that_it_may_not_read() -> None:
    grant = Grant(CWD, skill=limited("Read(docs/**)", "Write"))
    assert reason(stores(path="docs/a.md"), grant) == ""
    assert "not" in reason(stores(path="src/secret.md"), grant)
    assert "not" in reason(stores(path="docs/a.md"), Grant(CWD, skill=limited("Write")))


def test_skill_that_may_write_may_store_artifacts() -> None:
    for rules, allowed in (
        (("Read", "Write", "Bash", "Glob"), True), (("write_artifact",), True), (("Write($OUTPUT_DIR/**)",), True),
        (("Write($OUTPUT_DIR/*.csv)",), False), (("Write(docs/**)",), False), (("Read", "Bash", "Edit"), False),
    ):  # fmt: skip
        grant = Grant(CWD, "read_only", skill=limited(*rules))
        assert (reason(stores("a/z.md"), grant) == "") == allowed, rules
        assert "not one of" in reason(tool("put"), grant)
    edits = tool("edit_file", spec_name="Edit", outputs_only=True)
    assert "not one of" in reason(edits, Grant(CWD, skill=limited("Read", "Write")))


def test_code_of_a_skill_needs_its_word_for_a_read_only_task_and_no_scripts_outside() -> None:
    plain = Skill("x", "x", CWD)
    assert "has code that may write" in reason(skill_call(plain, {}), Grant(CWD, "read_only"))
    assert reason(skill_call(plain, {}), Grant(CWD)) == ""
    outside = Skill("x", "x", CWD, outside=("../run.sh is outside",))
    for call, grant in (
        (skill_call(outside, {}), Grant(CWD)),
        (command("ls"), Grant(CWD, skill=outside)),
    ):
        assert "no code of skill 'x' may run" in reason(call, grant)
        assert reason(call, replace(grant, runs_outside_scripts=True)) == ""


# ── no restriction makes a call freer ───────────────────────────────────────────────────────────────────

RULE = st.sampled_from(["Bash", "Bash(rm:*)", "Bash(git push:*)", "Skill(deploy)", "Write(docs/**)", "Read(docs/**)"])
RULES = st.lists(RULE, max_size=3).map(tuple)
STRICTER = st.builds(StricterPermissions, ask=RULES, deny=RULES)
SKILLS = st.none() | st.builds(limited, RULE)
CALLS = st.sampled_from(
    [
        command("rm x"), command("git push"), command("$X"), command("ls"), stores(),
        tool("write_file", "docs/a", spec_name="Write"), tool("read_file", "docs/a", writes=False, spec_name="Read"),
        skill_call(Skill("deploy", "x", CWD), {}),
    ]
)  # fmt: skip
GRANTS = st.builds(
    Grant, st.just(CWD), st.sampled_from(PROFILES), RULES, RULES, RULES, st.sampled_from(list(Verdict)), STRICTER,
    st.booleans(), st.booleans(), st.booleans(), SKILLS, SKILLS,
)  # fmt: skip


def freedom(call: Call, grant: Grant) -> int:
    """How freely a call may run: denied, asked, allowed to read, allowed to change something."""
    match decide(call, grant):
        case Deny():
            return 0
        case Ask():
            return 1
        case Allow(writes):
            return 2 + writes


@given(CALLS, GRANTS, RULES, st.sampled_from(["ask", "deny"]))
def test_a_further_rule_anywhere_never_makes_a_call_freer(
    call: Call, grant: Grant, further: tuple[str, ...], kind: str
) -> None:
    before = freedom(call, grant)
    assert freedom(call, replace(grant, **{kind: (*getattr(grant, kind), *further)})) <= before
    assert freedom(call, replace(grant, **{kind: (*further, *getattr(grant, kind))})) <= before
    stricter = grant.stricter.and_also(StricterPermissions.model_validate({kind: further}))
    assert freedom(call, replace(grant, stricter=stricter)) <= before


@given(CALLS, GRANTS, st.data())
def test_fewer_allow_rules_never_make_a_call_freer(call: Call, grant: Grant, data: st.DataObject) -> None:
    kept = data.draw(st.sets(st.sampled_from(grant.allow)) if grant.allow else st.just(set[str]()))
    fewer = replace(grant, allow=tuple(rule for rule in grant.allow if rule in kept))
    assert freedom(call, fewer) <= freedom(call, grant)


@given(CALLS, GRANTS, SKILLS)
@example(command("$X"), Grant(CWD, deny=("Bash(rm:*)",), yes=True), None)
def test_a_stricter_grant_never_lets_a_call_change_more(call: Call, grant: Grant, skill: Skill | None) -> None:
    """A stricter profile may allow to read what needed an approval as a change: the call then changes nothing.

    Without ``yes`` a person decides on possible matches of deny rules, which ``yes`` denies.
    """
    for profile in PROFILES[PROFILES.index(grant.profile) :]:
        after = freedom(call, replace(grant, profile=profile))
        assert after <= freedom(call, grant) or after == 2
        assert after == 0 or freedom(call, grant) > 0
    assert freedom(call, replace(grant, yes=False)) <= max(freedom(call, grant), 1)
    for stricter in (
        replace(grant, confined=False), replace(grant, runs_outside_scripts=False),
        replace(grant, named=grant.named or skill),
        replace(grant, default=max(grant.default, ASK, key=list(Verdict).index)),
    ):  # fmt: skip
        assert freedom(call, stricter) <= freedom(call, grant)


@pytest.mark.parametrize("field", ["path", "pattern", "url"])
def test_rules_are_about_the_path_pattern_or_address_of_a_tool(field: str) -> None:
    call = tool_call(Tool("look", "", {}, nothing, writes=True), {field: "https://bad.example/a"})
    for about, denied, allowed in (("look(https://bad.example/*)", DENY, ALLOW), ("look(x)", ALLOW, ASK)):
        assert (verdict(call, deny=(about,)), verdict(call, ASK, allow=(about,))) == (denied, allowed)
