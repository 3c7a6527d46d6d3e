"""Files that decide what runs outside of the confinement, wherever they are: no code of a workspace changes them."""

from __future__ import annotations

import os
import py_compile
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from fireswarm.capabilities.workspace.place import Workspace
from fireswarm.contracts.llm.chat import ChatRequest
from fireswarm.errors import InvalidInput, SandboxRefused
from fireswarm.llm.providers.scripted import load_script
from fireswarm.processes.confinement.paths.late_names import LateNames
from fireswarm.processes.confinement.paths.program_files import program_files
from fireswarm.processes.confinement.skill_view import SkillView
from fireswarm.processes.confinement.view import View
from fireswarm.processes.run import LIMITS, Confined, Program, run_confined
from fireswarm.runs.make_mind import agent_catalog
from fireswarm.runs.model_adapters import make_model
from fireswarm.settings import AgentSettings, load_agent_settings, load_found_settings
from fireswarm.settings.run_folders import STATE_HOME, add_named_places, add_swarm_folders, places_on
from fireswarm.settings.trust import TrustedFiles
from tests.support.patience import PATIENCE_SECONDS

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="code is confined on Linux"),
    pytest.mark.usefixtures("rung"),
]

GIVEN = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
GOOD = "good\n"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(STATE_HOME, str(tmp_path / "state"))
    folder = tmp_path / "project"
    folder.mkdir()
    try:
        View(folder).check()
    except SandboxRefused as error:
        pytest.skip(str(error))
    return folder


def run(line: str, folder: Path) -> str:
    return run_confined(["/bin/bash", "-c", line], View(folder, writable=True), GIVEN, PATIENCE_SECONDS)[1]


def run_as_skill(line: str, folder: Path, tmp_path: Path) -> None:
    for name in ("own", "work"):
        (tmp_path / name).mkdir(exist_ok=True)
    view = SkillView(tmp_path / "own", tmp_path / "work", (folder,), writes=True)
    confined = Confined.start(Program(("/bin/bash", "-c", f"cd {folder}; {line}"), view.workdir, GIVEN), view, LIMITS)
    try:
        confined.process.communicate(timeout=PATIENCE_SECONDS)
    finally:
        confined.kill()


def write(place: Path, text: str = GOOD) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    return place


def attack(file: str) -> str:
    """Return a line that tries each way to change a file, and then makes another one beside it."""
    folder = Path(file).parent
    tries = (
        f"echo evil > {file}",
        f"rm -f {file}; echo evil > {file}",
        f"echo evil > new; mv -f new {file}",
        f"ln -sf new {file}",
        f"ln {file} copied; echo evil > copied",
        f"mv {folder} gone; mkdir -p {folder}; echo evil > {file}",
    )
    return f"{'; '.join(tries)}; echo new > {folder}/beside"


def check_kept(workspace: Path, file: str, tmp_path: Path) -> None:
    """Attack a file as a command, as a skill and with the file tools."""
    place = workspace / file
    run(attack(file), workspace)
    run_as_skill(attack(file), workspace, tmp_path)
    assert place.read_text() == GOOD and not place.is_symlink()
    assert (place.parent / "beside").read_text() == "new\n"
    with pytest.raises(InvalidInput, match="only a person changes it"):
        Workspace(workspace, protects=True).locate(file, writes=True)


def test_settings_file_that_an_option_names_is_not_changed(workspace: Path, tmp_path: Path) -> None:
    write(workspace / "ci" / "agent.yaml", "{}\n")
    load_found_settings(workspace / "ci" / "agent.yaml", workspace, tmp_path)
    write(workspace / "ci" / "agent.yaml")
    check_kept(workspace, "ci/agent.yaml", tmp_path)


def test_settings_file_that_a_program_names_is_not_changed(workspace: Path, tmp_path: Path) -> None:
    load_agent_settings(write(workspace / "ci" / "mine.yaml", "{}\n"))
    write(workspace / "ci" / "mine.yaml")
    check_kept(workspace, "ci/mine.yaml", tmp_path)


def test_script_of_the_model_is_not_changed(workspace: Path, tmp_path: Path) -> None:
    write(workspace / "tools" / "model.py", "def answer(request):\n    return 'x'\n")
    settings = AgentSettings.model_validate({"model": {"provider": "scripted", "script": "tools/model.py:answer"}})
    make_model(settings, workspace, {})
    write(workspace / "tools" / "model.py")
    check_kept(workspace, "tools/model.py", tmp_path)


def test_compiled_code_beside_the_script_of_the_model_does_not_run(workspace: Path) -> None:
    """A command can write it, with the time and the size of the script."""
    script = write(workspace / "model.py", "def answer(request):\n    return 'good'\n")
    known = script.stat()
    evil = write(workspace / "evil.py", "def answer(request):\n    return 'evil'\n")
    os.utime(evil, ns=(known.st_atime_ns, known.st_mtime_ns))
    py_compile.compile(str(evil), cfile=cache_from_source(str(script)), doraise=True)
    answer = load_script("model.py:answer", workspace)
    assert callable(answer) and answer(ChatRequest(system="", messages=(), max_tokens=1)) == "good"


def test_skills_in_a_folder_that_settings_name_are_not_changed(workspace: Path) -> None:
    skill = workspace / "own" / "kit" / "greet"
    write(skill / "scripts" / "greet.sh")
    write(skill / "SKILL.md", "---\nname: greet\ndescription: Greets.\n---\n# Greet\n")
    home = workspace.parent
    TrustedFiles(home).add_folder(skill)
    agent_catalog(AgentSettings.model_validate({"skills": {"dir": "own/kit"}}), workspace, home)
    run(attack("own/kit/greet/scripts/greet.sh"), workspace)
    run("mkdir own/kit/more; echo evil > own/kit/more/SKILL.md; mv own/kit own/gone; echo x > own/made", workspace)
    assert sorted(path.name for path in (workspace / "own").iterdir()) == ["kit", "made"]
    assert [path.name for path in skill.parent.iterdir()] == ["greet"]
    assert (skill / "scripts" / "greet.sh").read_text() == GOOD and TrustedFiles(home).has_folder(skill)


@pytest.mark.parametrize("name", ["roles/scout/ROLE.md", "capabilities/tool.py", "swarm.yaml", "skills/x/SKILL.md"])
def test_swarm_within_a_larger_workspace_keeps_what_its_operator_wrote(
    name: str, workspace: Path, tmp_path: Path
) -> None:
    write(workspace / "team" / name)
    add_swarm_folders(workspace / "team" / ".fireswarm")
    line = f"echo evil > team/{name}; rm -rf team/roles team/capabilities team/skills team/swarm.yaml; mv team gone"
    run(f"{line}; echo new > team/other", workspace)
    run_as_skill(line, workspace, tmp_path)
    assert (workspace / "team" / name).read_text() == GOOD and (workspace / "team" / "other").is_file()


@pytest.mark.parametrize("name", ["roles", "capabilities", "agent.yaml"])
def test_what_a_swarm_within_a_workspace_does_not_have_yet_is_set_aside(name: str, workspace: Path) -> None:
    (workspace / "team").mkdir()
    add_swarm_folders(workspace / "team" / ".fireswarm")
    run(f"echo evil > team/{name}; echo new > team/other", workspace)
    assert not (workspace / "team" / name).exists() and (workspace / "team" / "other").exists()


def test_link_on_the_way_to_a_named_file_is_not_exchanged(workspace: Path) -> None:
    write(workspace / "real" / "agent.yaml")
    (workspace / "conf").symlink_to("real")
    add_named_places(workspace / "conf" / "agent.yaml")
    assert program_files(workspace)[:2] == [workspace / "conf", workspace / "real" / "agent.yaml"]
    run("mkdir evil; echo evil > evil/agent.yaml; rm conf; ln -s evil conf; ln -sfn evil conf", workspace)
    assert not (workspace / "conf").exists() or (workspace / "conf" / "agent.yaml").read_text() == GOOD
    assert (workspace / "real" / "agent.yaml").read_text() == GOOD


def test_file_that_a_person_names_while_a_command_works_is_not_set_aside(workspace: Path) -> None:
    write(workspace / "ci" / "agent.yaml")
    late = LateNames([workspace])
    add_named_places(workspace / "ci" / "agent.yaml")
    second = LateNames([workspace])
    assert late.set_aside() == second.set_aside() == []
    assert (workspace / "ci" / "agent.yaml").read_text() == GOOD


def test_places_on_a_path_end_with_loops_of_links(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "up").symlink_to("../" + tmp_path.name + "/x")
    assert len(places_on(tmp_path / "a" / "file")) <= 42
    assert places_on(tmp_path / "up" / "file") == [tmp_path / "up", tmp_path / "x" / "file"]
    assert places_on(tmp_path / "x" / ".." / "y") == [tmp_path / "y"]
