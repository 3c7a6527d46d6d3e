"""Names at the top of a workspace: what programs read by themselves is protected, the work is not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fireswarm.capabilities.workspace.place import Workspace
from fireswarm.errors import InvalidInput, SandboxRefused
from fireswarm.processes.confinement.paths import hard_links
from fireswarm.processes.confinement.paths.hard_links import find_other_names
from tests.unit.processes.test_program_files import run
from tests.unit.processes.test_program_files import workspace as workspace

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="code is confined on Linux"),
    pytest.mark.usefixtures("rung"),
]


@pytest.mark.parametrize(
    "name",
    [
        *(".npmrc", ".pre-commit-config.yaml", "lefthook.yml", ".lefthook-local.toml", ".tool-versions", "mise.toml"),
        *(".pnpmfile.cjs", "sitecustomize.py", "pyvenv.cfg", "rust-toolchain.toml", ".Rprofile", ".pdbrc", ".direnv"),
        *(".clinerules", "opencode.json", ".yarn/releases/yarn.cjs", ".yarn/plugins/x.cjs", ".hg/hgrc"),
        *(".gradle/init.d/x.gradle", ".github/hooks/x.json"),
    ],
)
def test_settings_that_a_program_reads_by_itself_are_neither_made_nor_changed(name: str, workspace: Path) -> None:
    place, top = workspace / name, Path(name).parts[0]
    line = f"mkdir -p {Path(name).parent}; echo evil > {name}; echo evil > new; mv -f new {name}"
    run(f"{line}; mkdir -p {top}/cache && echo work > {top}/cache/work", workspace)
    assert not place.exists()
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("good")
    run(f"{line}; mv {top} gone; {line}; echo new > other", workspace)
    assert place.read_text() == "good" and (workspace / "other").exists()
    with pytest.raises(InvalidInput, match="only a person changes it"):
        Workspace(workspace, protects=True).locate(name, writes=True)


def test_link_in_the_place_of_a_folder_that_holds_protected_names_leads_to_what_is_protected(workspace: Path) -> None:
    (workspace / "yarn" / "releases").mkdir(parents=True)
    (workspace / "yarn" / "releases" / "yarn.cjs").write_text("good")
    (workspace / ".yarn").symlink_to("yarn")
    run(
        "echo evil > .yarn/releases/yarn.cjs; echo evil > yarn/releases/new.cjs; mv yarn gone; echo x > other",
        workspace,
    )
    assert [path.read_text() for path in (workspace / "yarn" / "releases").iterdir()] == ["good"]
    assert (workspace / "other").exists()


@pytest.mark.parametrize(
    "name",
    [
        *(
            "package.json",
            "Makefile",
            "conftest.py",
            "pyproject.toml",
            "setup.py",
            "Dockerfile",
            ".env",
            ".eslintrc.js",
        ),
        *(
            ".gitignore",
            ".gitattributes",
            ".python-version",
            ".github/workflows/ci.yml",
            ".venv/pyvenv.cfg",
            ".yarn/cache/x",
        ),
        *("node_modules/x/package.json", ".gradle/caches/x", "AGENTS.md", "sub/.npmrc", ".bundle/config", "mkdocs.yml"),
    ],
)
def test_files_of_the_work_are_made_and_changed(name: str, workspace: Path) -> None:
    for text in ("one", "two"):
        run(f"mkdir -p {Path(name).parent}; echo {text} > new; mv new {name}", workspace)
        assert (workspace / name).read_text() == f"{text}\n"


@pytest.mark.parametrize("name", ["agent.yaml", "skills/s/SKILL.md", ".git/hooks/pre-commit"])
def test_protected_file_is_not_changed_by_its_second_name(name: str, workspace: Path) -> None:
    place, second = workspace / name, workspace / "src" / "second"
    for path in (place, second):
        path.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("good")
    second.hardlink_to(place)
    (workspace / "src" / "beside").write_text("one")
    run("echo evil > src/second; mv src src2; echo evil > src2/second; echo two > src/beside", workspace)
    assert place.read_text() == "good"
    assert [path.read_text() for path in workspace.glob("src*/beside")] == ["two\n"]
    with pytest.raises(InvalidInput, match="only a person changes it"):
        Workspace(workspace, protects=True).locate("src/second", writes=True)


def test_second_name_is_searched_for_only_if_there_is_one(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (workspace / "agent.yaml").write_text("good")
    (workspace / "skills").mkdir()
    (workspace / "skills" / "again").hardlink_to(workspace / "agent.yaml")
    monkeypatch.setattr(hard_links, "MAX_SEARCHED", 0)
    assert find_other_names(workspace, [workspace / "agent.yaml", workspace / "skills"]) == []
    with pytest.raises(SandboxRefused, match="hard link"):
        find_other_names(workspace, [workspace / "agent.yaml"])
