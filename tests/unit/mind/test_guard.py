"""Profiles of tasks, and which commands may change the workspace under them."""

from __future__ import annotations

from pathlib import Path

import pytest

from fireswarm.contracts.skills.tool import Tool
from fireswarm.contracts.swarm.task import Constraints
from fireswarm.mind.guard import may_write, profile_of, refuse_command, refuse_tool
from fireswarm.skills.packs.catalog import Skill


@pytest.fixture
def skill(tmp_path: Path) -> Skill:
    folder = tmp_path / "skills" / "tidy"
    (folder / "scripts").mkdir(parents=True)
    (folder / "scripts" / "tidy.py").write_text("print('tidy')")
    (folder / "scripts" / "cat").write_text("")
    return Skill("tidy", "Tidies.", folder)


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


@pytest.mark.parametrize("command", ["ls", "rm -rf .", "python x.py", ""])
def test_profile_decides_whether_a_command_may_write(command: str, tmp_path: Path) -> None:
    assert may_write(command, "permissive", None, tmp_path)
    assert not may_write(command, "demo_safe", None, tmp_path)
    assert not may_write(command, "read_only", None, tmp_path)


def test_demo_safe_lets_only_the_selected_skills_scripts_write(skill: Skill, tmp_path: Path) -> None:
    scripts = skill.folder / "scripts"

    def writes(command: str, cwd: Path = tmp_path, profile: str = "demo_safe") -> bool:
        return may_write(command, profile, skill, cwd)

    own = scripts / "tidy.py"
    assert writes(f"python {own} -x")
    assert writes(f"python3 {own} && {own}")
    assert writes(str(own))
    assert writes("python scripts/tidy.py", skill.folder)
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


def test_allowed_tools_apply_to_commands(tmp_path: Path) -> None:
    limited = Skill("x", "x", tmp_path, allowed_tools=("Bash(git:*)", "Read"))
    assert refuse_command("git commit", limited) == ""
    assert refuse_command("rm a", None) == ""
    assert "not one of the skill's allowed tools" in refuse_command("rm a", limited)
    assert "allowed tools" in refuse_command("git log $(rm a)", limited)


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


def test_skill_stores_no_file_that_it_may_not_read(tmp_path: Path) -> None:
    stores = Tool("write_artifact", "", {}, nothing, writes=True, outputs_only=True)
    limited = Skill("x", "x", tmp_path, allowed_tools=("Read(docs/**)", "Write"))
    assert refuse_tool(stores, {"name": "a.md", "path": "docs/a.md"}, "permissive", limited) == ""
    assert "not" in refuse_tool(stores, {"name": "a.md", "path": "src/secret.md"}, "permissive", limited)
    writes_only = Skill("x", "x", tmp_path, allowed_tools=("Write",))
    assert "not" in refuse_tool(stores, {"name": "a.md", "path": "docs/a.md"}, "permissive", writes_only)


def test_skill_that_may_write_may_store_artifacts(tmp_path: Path) -> None:
    stores = Tool("write_artifact", "", {}, nothing, writes=True, outputs_only=True)
    writes = Tool("put", "", {}, nothing, writes=True)
    for rules, allowed in (
        (("Read", "Write", "Bash", "Glob"), True), (("write_artifact",), True), (("Write($OUTPUT_DIR/**)",), True),
        (("Write($OUTPUT_DIR/*.csv)",), False), (("Write(docs/**)",), False), (("Read", "Bash", "Edit"), False),
    ):  # fmt: skip
        limited = Skill("x", "x", tmp_path, allowed_tools=rules)
        assert (refuse_tool(stores, {"name": "a/z.md"}, "read_only", limited) == "") == allowed, rules
        assert "not one of" in refuse_tool(writes, {}, "permissive", limited)
