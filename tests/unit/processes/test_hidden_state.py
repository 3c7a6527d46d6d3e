"""What no command and no skill sees, wherever it is: the state of swarms and of the agent, and sockets."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from fireswarm.errors import SandboxRefused
from fireswarm.processes.confinement.paths.late_names import NOTES_FOLDER
from fireswarm.processes.confinement.protected import hidden_places
from fireswarm.processes.confinement.skill_view import SkillView
from fireswarm.processes.confinement.view import View
from fireswarm.processes.run import LIMITS, Confined, Program, run_confined
from fireswarm.settings.run_folders import STATE_HOME, add_swarm_folders, swarm_folders
from tests.support.counting import counting
from tests.support.patience import PATIENCE_SECONDS

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="code is confined on Linux"),
    pytest.mark.usefixtures("rung"),
]

PATH = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
SECRET = "sesame-4711"
HIDDEN = (".fireswarm", "deep/er/.fireswarm", "state/fireswarm", "elsewhere/data")
"""A swarm's folder, one further down, the agent's state, and the folder of a store that settings name."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder such as a home, in which all kinds of state are."""
    folder = tmp_path / "home"
    for name in (*HIDDEN, "src", "elsewhere/more", "deep/er/src"):
        (folder / name).mkdir(parents=True)
        (folder / name / "file").write_text(SECRET if name in HIDDEN else "plain")
    monkeypatch.setenv(STATE_HOME, str(folder / "state"))
    add_swarm_folders(folder / "elsewhere" / "data")
    if os.geteuid() == 0:
        for place in (folder, *folder.rglob("*")):
            os.chown(place, 61200, 61200)
        tmp_path.chmod(0o755)
    try:
        View(folder).check()
    except SandboxRefused as error:
        pytest.skip(str(error))
    return folder


def command(line: str, view: View) -> str:
    return run_confined(["/bin/bash", "-c", line], view, PATH, PATIENCE_SECONDS)[1]


def skill(line: str, view: SkillView) -> str:
    """Run a line as the code of a skill could."""
    confined = Confined.start(Program(("/bin/bash", "-c", line), view.workdir, PATH), view, LIMITS)
    try:
        out, err = confined.process.communicate(timeout=PATIENCE_SECONDS)
        return (out + err).decode()
    finally:
        confined.kill()


ATTACK = """
for place in {places}; do
  ls -A $place; cat $place/*; echo x > $place/made; rm -rf $place; mv $place moved; ln -s $place link-$RANDOM
  cat link-*/*; ln -f $place/file hard; cat hard
done 2>/dev/null
cat src/file; grep -r sesame . 2>/dev/null
for each in $(find . -name file 2>/dev/null); do cat $each 2>/dev/null; done
"""


def attack(folder: Path) -> str:
    return f"cd {folder}\n" + ATTACK.format(places=" ".join(HIDDEN))


def check_unchanged(home: Path, told: str) -> None:
    assert SECRET not in told
    assert "plain" in told
    for name in HIDDEN:
        listed = [
            path.name for path in (home / name).iterdir() if path.name not in ("key", "swarms.jsonl", NOTES_FOLDER)
        ]
        assert listed == ["file"] and (home / name / "file").read_text() == SECRET, name


@pytest.mark.parametrize("writable", [True, False])
def test_command_sees_no_state_in_its_workspace(writable: bool, home: Path) -> None:
    check_unchanged(home, command(attack(home), View(home, writable)))


def test_command_sees_no_state_in_a_folder_that_it_may_read(home: Path, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir(mode=0o777)
    check_unchanged(home, command(attack(home), View(tmp_path / "work", writable=True, readable=(home,))))


@pytest.mark.parametrize("writes", [True, False])
def test_skill_sees_no_state(writes: bool, home: Path, tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    workdir = home / ".fireswarm" / "work" / "RUN"
    workdir.mkdir(parents=True)
    (workdir / "own").write_text("own")
    view = SkillView(tmp_path / "private", workdir, (home,), writes=writes)
    told = skill(f"cat {workdir}/own; {attack(home)}\necho x > {workdir}/made && echo made", view)
    assert "own" in told and "made" in told and (workdir / "made").exists()
    (workdir / "made").unlink()
    (workdir / "own").unlink(missing_ok=True)  # it may remove its own files
    workdir.rmdir()
    workdir.parent.rmdir()
    check_unchanged(home, told)


def test_output_folder_in_the_folder_of_the_swarm_is_all_that_is_seen_of_it(home: Path) -> None:
    outputs = home / ".fireswarm" / "work" / "outputs" / "TASK"
    other = outputs.with_name("OTHER")
    for folder in (outputs, other):
        folder.mkdir(parents=True)
        folder.chmod(0o777)
    (other / "file").write_text(SECRET)
    line = f"echo x > {outputs}/made; cat {other}/file; rm -rf {other}; ln -s / {other}; mv {outputs} {outputs}2"
    assert SECRET not in command(line, View(home, writable=True, outputs=outputs))
    assert (outputs / "made").read_text() == "x\n"
    assert (other / "file").read_text() == SECRET and not other.is_symlink()


@pytest.mark.parametrize("bound", ["absolute", "relative"])
def test_socket_in_the_workspace_cannot_be_connected_to(
    bound: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(home / "src" / "docker.sock") if bound == "absolute" else "src/docker.sock")
        server.listen()
        (home / "src" / "docker.sock").chmod(0o777)
        code = "import socket; socket.socket(socket.AF_UNIX).connect('src/docker.sock'); print('connected')"
        for writable in (True, False):
            told = command(f'cd {home}; cat src/file; /usr/bin/python3 -c "{code}"', View(home, writable))
            assert "plain" in told and "connected" not in told, told


@pytest.mark.parametrize("swapped", ["workspace", "outputs"])
def test_folder_that_has_become_a_link_is_refused(swapped: str, home: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "other")
    link = tmp_path / "link"
    view = View(link, True) if swapped == "workspace" else View(home, True, outputs=link)
    with pytest.raises(SandboxRefused, match="is a link to another place now"):
        command("touch made", view)
    assert not list((tmp_path / "other").iterdir())


def test_search_for_state_is_bounded_and_follows_no_link(home: Path, tmp_path: Path) -> None:
    (home / "src" / "loop").symlink_to(home)
    (home / "src" / ".fireswarm").symlink_to(home / "elsewhere")
    (home / "a" / "b" / "c" / "d" / "e" / ".fireswarm").mkdir(parents=True)
    assert {path.relative_to(home).as_posix() for path in hidden_places(home)} == set(HIDDEN)


def test_damaged_list_of_swarms_costs_only_its_damaged_lines(home: Path) -> None:
    known = home / "state" / "fireswarm" / "swarms.jsonl"
    known.write_bytes(b"[1]\n\xff\n" + known.read_bytes() + b'"/x')
    assert swarm_folders() == [home / "elsewhere" / "data"]
    add_swarm_folders(home / "elsewhere" / "data")
    assert known.read_bytes().endswith(b'"/x'), "it is known already"


def test_workspace_of_a_skill_that_has_become_a_link_is_refused(tmp_path: Path) -> None:
    for place in ("outside", "private", "workdir"):
        (tmp_path / place).mkdir()
    (tmp_path / "part").symlink_to(tmp_path / "outside")
    view = SkillView(tmp_path / "private", tmp_path / "workdir", (tmp_path / "part",), writes=True)
    with pytest.raises(SandboxRefused, match="a link has taken its place"), view.confine({}):
        pass


def test_state_is_hidden_where_the_home_is_behind_a_link(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home.parent / "homes").symlink_to(home.parent)
    monkeypatch.setenv(STATE_HOME, str(home.parent / "homes" / "home" / "state"))
    check_unchanged(home, command(attack(home), View(home, writable=True)))


def test_what_is_hidden_is_left_out_in_proportion_to_its_number(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        tmp_path.chmod(0o755)
    calls: list[int] = []
    for number in (50, 400):
        workspace = tmp_path / str(number)
        for each in range(number):
            (workspace / f"part{each}" / ".fireswarm").mkdir(parents=True)
        view = View(workspace, writable=True)
        try:
            view.check()
        except SandboxRefused as error:
            pytest.skip(str(error))
        with counting() as counted, view.confine(PATH):
            pass
        calls.append(counted["python calls"])
    assert calls[1] < 8 * calls[0], calls
