"""One broken plugin or skill never stops a command: it is left out, and `swarm doctor` names it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.code_at_work import code_at_work
from tests.support.fleet import environment, lay_out

PLUGINS = {
    "raises": "raise RuntimeError('no licence')",
    "exits": "import sys; sys.exit('no licence')",
    "stops": "raise SystemExit",
    "unlike": "CAPABILITY = 'not a capability'",
    "taken": "from fireswarm import Capability\nCAPABILITY = Capability('workspace', 'W', 'Takes a built-in id.')",
    "misnamed": "from fireswarm import Capability\nCAPABILITY = Capability('No Name', 'N', 'Has a bad id.')",
    "fine": "from fireswarm import Capability\nCAPABILITY = Capability('fine', 'Fine', 'Works.')",
}
DICE = '''
from fireswarm import Capability, tool


@tool(idempotent=False)
def roll(sides: int = 6) -> int:
    """Rolls a die."""
    return sides


DICE = Capability("dice", "Dice", "Rolls dice.", tools=lambda config, context: [roll])
'''
BROKEN = sorted(set(PLUGINS) - {"fine"})


def install(folder: Path) -> None:
    """Write packages with an entry point each, as an installation leaves them."""
    for name, code in PLUGINS.items():
        (folder / f"plugin_{name}.py").write_text(code + "\n")
        information = folder / f"plugin_{name}-1.0.dist-info"
        information.mkdir()
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: plugin-{name}\nVersion: 1.0\n")
        (information / "entry_points.txt").write_text(f"[fireswarm.capabilities]\n{name} = plugin_{name}:CAPABILITY\n")


def swarm(root: Path, *arguments: str, packages: Path | None = None) -> subprocess.CompletedProcess[str]:
    before = [os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []
    env = environment() | {"COLUMNS": "200"}
    if packages is not None:
        env["PYTHONPATH"] = os.pathsep.join([str(packages), *before])
    command = [sys.executable, "-m", "fireswarm.cli", *arguments]
    return subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, timeout=120)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "swarm"
    folder.mkdir()
    lay_out(folder, {"nothing": "", "other": ""}, settings={"store": {"uri": "memory"}})
    return folder


def test_broken_plugins_are_left_out_and_named_by_doctor(root: Path, tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    install(packages)
    listed = swarm(root, "capabilities", "--json", packages=packages)
    assert listed.returncode == 0, listed.stderr
    ids = [item["id"] for item in json.loads(listed.stdout)["items"]]
    assert "fine" in ids and ids.count("workspace") == 1 and "No Name" not in ids
    found = swarm(root, "doctor", "--json", packages=packages)
    plugins = [item for item in json.loads(found.stdout) if item["what"] == "plugin"]
    assert [item["detail"].split()[3] for item in plugins] == BROKEN
    assert not any(item["ok"] for item in plugins) and "no licence" in plugins[BROKEN.index("raises")]["detail"]


def test_task_with_a_plugins_capability_can_be_submitted_while_others_are_broken(root: Path, tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    install(packages)
    fine = swarm(root, "submit", "look", "--role", "scout", "--capability", "fine", packages=packages)
    assert fine.returncode == 0, fine.stderr
    unknown = swarm(root, "submit", "look", "--role", "scout", "--capability", "raises", packages=packages)
    assert unknown.returncode == 1 and "no licence" in unknown.stderr and "Traceback" not in unknown.stderr


def test_files_of_the_folder_are_capabilities_and_broken_ones_are_named(root: Path) -> None:
    folder = root / "capabilities"
    folder.mkdir()
    for name, code in PLUGINS.items():
        (folder / f"{name}.py").write_text(code + "\n")
    (folder / "empty.py").write_text("")
    (folder / "syntax.py").write_text("def\n")
    (folder / "_helper.py").write_text("raise SystemExit\n")
    (folder / "dice.py").write_text(DICE)
    listed = swarm(root, "capabilities", "--json")
    assert listed.returncode == 0, listed.stderr
    ids = [item["id"] for item in json.loads(listed.stdout)["items"]]
    assert {"fine", "dice"} <= set(ids) and ids.count("workspace") == 1
    assert [tool["name"] for tool in json.loads(swarm(root, "capabilities", "dice", "--json").stdout)["tools"]] == [
        "roll"
    ]
    found = swarm(root, "doctor", "--json")
    plugins = [item["detail"] for item in json.loads(found.stdout) if item["what"] == "plugin"]
    assert [Path(detail.split()[0]).stem for detail in plugins] == sorted([*BROKEN, "empty", "syntax"])
    task = swarm(root, "submit", "look", "--role", "scout", "--capability", "dice")
    assert task.returncode == 0, task.stderr


def test_agent_does_not_read_capabilities_of_the_folder(root: Path) -> None:
    (root / "capabilities").mkdir()
    (root / "capabilities" / "evil.py").write_text("from pathlib import Path\nPath('pwned').touch()\n")
    code = "from fireswarm.cli import agent_command; agent_command()"
    for arguments in (["capabilities"], ["run", "look", "--dry-run"]):
        subprocess.run([sys.executable, "-c", code, *arguments], cwd=root, env=environment(), timeout=120)
    assert not (root / "pwned").exists()
    swarm(root, "capabilities")
    assert (root / "pwned").exists(), "the test of the agent shows nothing"


def break_skills(root: Path) -> list[str]:
    """Add skills that cannot be used; return their names."""
    texts = {
        "yaml": "---\nname: [yaml\n  : {\n---\n# x\n",
        "bytes": "\0\1\2",
        "large": "---\nname: large\n---\n" + "x" * 2_000_000,
        "nested": "---\nname: nested\nmetadata: " + "[" * 50_000 + "\n---\n# x\n",
    }
    for name, text in texts.items():
        folder = root / "skills" / name
        folder.mkdir()
        (folder / "SKILL.md").write_text(text)
    (root / "skills" / "folder" / "SKILL.md").mkdir(parents=True)
    (root / "skills" / "loop").mkdir()
    (root / "skills" / "loop" / "SKILL.md").symlink_to("SKILL.md")
    (root / "skills" / "secret").mkdir()
    secret = root / "skills" / "secret" / "SKILL.md"
    secret.write_text("---\nname: secret\n---\n")
    secret.chmod(0)
    (root / "skills" / "aaa").symlink_to("aaa")
    return [*texts, "folder", "loop", "secret"]


def test_broken_skills_are_left_out_and_named_by_doctor(root: Path) -> None:
    names = break_skills(root)
    listed = swarm(root, "skills", "list", "--json")
    assert listed.returncode == 0, listed.stderr
    skills = [skill["name"] for skill in json.loads(listed.stdout)["skills"]]
    assert "nothing" in skills and not set(names) & set(skills)
    found = swarm(root, "doctor", "--json")
    details = [item["detail"] for item in json.loads(found.stdout) if item["what"] == "skill"]
    for name in names:
        assert any(f"/skills/{name}/SKILL.md" in detail for detail in details), (name, details)


def test_doctor_sets_aside_and_lists_names_that_a_killed_command_made(root: Path) -> None:
    with code_at_work(root) as process:
        (root / ".envrc").write_text("evil")
        process.kill()
    found = json.loads(swarm(root, "doctor", "--json").stdout)
    [told] = [item["detail"] for item in found if item["what"] == "late names"]
    assert told.startswith(f"in {root}, after a command that was killed: .envrc is now .envrc.set-aside-1")
    assert not (root / ".envrc").exists()
