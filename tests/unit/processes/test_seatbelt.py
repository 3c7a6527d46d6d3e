"""Profiles for macOS, judged as Seatbelt judges: of the rules that fit an operation on a path, the last one counts."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fireswarm.errors import SandboxRefused
from fireswarm.processes.confinement import ladder, view
from fireswarm.processes.confinement.paths import seatbelt
from fireswarm.processes.confinement.paths.names import GIT_PROTECTED, PROTECTED
from fireswarm.processes.confinement.paths.rules import PathRules
from fireswarm.processes.confinement.paths.seatbelt import Profile, confine_with_seatbelt, profile_of
from fireswarm.processes.confinement.skill_view import SkillView
from fireswarm.processes.confinement.view import View

READ, WRITE, CREATE, UNLINK = "file-read-data", "file-write-data", "file-write-create", "file-write-unlink"
TOKEN = re.compile(r'\(|\)|#?"(?:[^"])*"|[^\s()]+')


def parse(text: str) -> list[list[object]]:
    """Return the rules of a profile as lists of words and lists."""
    top: list[list[object]] = [[]]
    for word in TOKEN.findall(text):
        if word == "(":
            top.append([])
        elif word == ")":
            closed = top.pop()
            top[-1].append(closed)
        else:
            top[-1].append(word)
    assert len(top) == 1, "the parentheses are not balanced"
    return [rule for rule in top[0] if isinstance(rule, list)]


def fits_operation(named: str, operation: str) -> bool:
    return operation.startswith(named[:-1]) if named.endswith("*") else named == operation


def fits_path(condition: list[object], path: str, profile: Profile) -> bool:
    kind, given = str(condition[0]), condition[1]
    if kind == "regex":
        return re.search(str(given).removeprefix("#").strip('"').encode(), os.fsencode(path)) is not None
    assert isinstance(given, list) and given[0] == "param", condition
    place = profile.parameters[str(given[1]).strip('"')]
    return path == place or (kind == "subpath" and path.startswith(f"{place.rstrip('/')}/"))


def allows(profile: Profile, operation: str, path: Path | str) -> bool:
    """Judge one operation on a path by the text of the profile."""
    answer = False
    for action, *rest in parse(profile.text):
        named = [word for word in rest if isinstance(word, str)]
        conditions = [each for each in rest if isinstance(each, list)]
        on_paths = [each for each in conditions if each[0] in ("subpath", "literal", "regex")]
        if any(fits_operation(name, operation) for name in named) and any(
            fits_path(each, str(path), profile) for each in on_paths
        ):
            answer = action == "allow"
    return answer


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / 'a "project" (1)' / "work"
    for name in (".git/hooks", "src", ".fireswarm/out/task", ".fireswarm/blobs", "deep/er"):
        (folder / name).mkdir(parents=True)
    for name in (".git/config", "top.txt", "secret.env", "deep/er/key.pem"):
        (folder / name).write_text("x")
    return folder


def made_for(seen: View, tmp_path: Path) -> Profile:
    return profile_of(view.path_rules_of(seen, None, "/usr/bin:/bin"), tmp_path / "private")


def test_writable_workspace_is_changed_except_for_what_people_change(workspace: Path, tmp_path: Path) -> None:
    profile = made_for(View(workspace, writable=True), tmp_path)
    for name in ("top.txt", "new", "src/a/b", ".git/index.lock", ".git/objects/aa/bb", ".git/refs/heads/x", "skill"):
        assert all(allows(profile, each, workspace / name) for each in (READ, WRITE, CREATE, UNLINK)), name
    kept = [*PROTECTED, *(f".git/{name}" for name in GIT_PROTECTED)]
    spelled = [*kept, *map(str.upper, kept), *(name.replace("s", "\u017f").replace("k", "\u212a") for name in kept)]
    for name in [*spelled, *(f"{name}/below" for name in spelled)]:
        assert allows(profile, READ, workspace / name), name
        assert not any(allows(profile, each, workspace / name) for each in (WRITE, CREATE, UNLINK)), name
    assert not allows(profile, UNLINK, workspace / ".git") and not allows(profile, UNLINK, workspace)


def test_command_reads_and_changes_nothing_else(workspace: Path, tmp_path: Path) -> None:
    profile = made_for(View(workspace, writable=True), tmp_path)
    outside = [tmp_path / "other", workspace.parent / "workshop", Path.home() / ".ssh/id", "/private/etc/passwd-", "/x"]
    for place in [*outside, "/private/var/run/docker.sock", "/dev/ttys001", "/dev/disk0"]:
        assert not any(allows(profile, each, place) for each in (READ, WRITE, CREATE, UNLINK)), place
    assert allows(profile, "file-read-metadata", workspace.parent) and not allows(profile, READ, workspace.parent)
    assert allows(profile, WRITE, tmp_path / "private/tmp/x") and not allows(
        profile, WRITE, tmp_path / "private/files/x"
    )
    assert allows(profile, READ, "/usr/lib/libSystem.B.dylib") and not allows(profile, WRITE, "/usr/lib/x")


def test_read_only_command_changes_nothing(workspace: Path, tmp_path: Path) -> None:
    profile = made_for(View(workspace), tmp_path)
    assert allows(profile, READ, workspace / "src/a.py")
    assert not any(allows(profile, each, workspace / "src/a.py") for each in (WRITE, CREATE, UNLINK))


def test_hidden_files_stay_hidden_under_any_name_and_the_tasks_own_folder_is_open(
    workspace: Path, tmp_path: Path
) -> None:
    hidden = (workspace / "secret.env", workspace / "deep/er/key.pem")
    outputs = workspace / ".fireswarm/out/task"
    profile = made_for(View(workspace, writable=True, hidden=hidden, outputs=outputs), tmp_path)
    for name in ("secret.env", "deep/er/key.pem", ".fireswarm/blobs/x", ".fireswarm/out/other/x", "src/.fireswarm/x"):
        assert not any(allows(profile, each, workspace / name) for each in (READ, WRITE, CREATE)), name
    for name in ("deep", "deep/er"):
        assert not allows(profile, UNLINK, workspace / name), f"{name} could be moved with what is hidden in it"
    assert allows(profile, CREATE, outputs / "result.csv") and allows(profile, CREATE, workspace / "deep/er/new")


def test_path_never_becomes_a_rule(tmp_path: Path) -> None:
    odd = tmp_path / '") (allow default) (regex #".*'
    odd.mkdir()
    profile = made_for(View(odd, writable=True), tmp_path)
    assert "allow default" not in profile.text and allows(profile, CREATE, odd / "new")
    assert not allows(profile, CREATE, odd / "roles") and not allows(profile, READ, tmp_path / "elsewhere")


@pytest.mark.parametrize("network", [False, True])
def test_network_and_services_are_those_that_the_view_allows(workspace: Path, tmp_path: Path, network: bool) -> None:
    rules = PathRules(folder=workspace, readable=[workspace], network=network)
    text = profile_of(rules, tmp_path).text
    assert ("network-outbound" in text, "dnssd" in text) == (network, network)
    assert "(allow default)" not in text and "SecurityServer" not in text and "pasteboard" not in text


def test_skill_works_in_its_folders(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, workdir = workspace / ".fireswarm/work/home", workspace / ".fireswarm/work/dir"
    for folder in (home, workdir):
        folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    seen = SkillView(home=home, workdir=workdir, workspaces=(workspace,), writes=True)
    profile = profile_of(seen.path_rules("/usr/bin"), tmp_path / "private")
    for place in (home / "x", workdir / "x", workspace / "src/new"):
        assert allows(profile, CREATE, place), place
    for place in (workspace / ".fireswarm/blobs/x", workspace / "roles/x", workspace / ".git/hooks/post-commit"):
        assert not allows(profile, CREATE, place), place


def stand_in(tmp_path: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process find a macOS whose ``sandbox-exec`` is *script*; "$@" are the words of the command."""
    program = tmp_path / "sandbox-exec"
    program.write_text(f'#!/bin/bash\nwhile [ "$1" != -p ]; do shift; done; shift 2\n{script}\n')
    program.chmod(0o755)
    monkeypatch.setattr(seatbelt, "SANDBOX_EXEC", str(program))
    monkeypatch.setattr(sys, "platform", "darwin")
    seatbelt.reason_against_seatbelt.cache_clear()


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ('case "$2" in */unseen/*) echo "cat: Operation not permitted" >&2; exit 1;; esac; exec "$@"', ""),
        ('exec "$@"', "does not confine"),
        ("echo 'sandbox-exec: profile: unbound variable' >&2; exit 65", "unbound variable"),
    ],
)
def test_machine_confines_only_if_a_trial_shows_it(
    script: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, script, monkeypatch)
    try:
        if not reason:
            assert ladder.choose_rung() == "seatbelt"
            return
        with pytest.raises(SandboxRefused, match=reason):
            ladder.choose_rung()
    finally:
        seatbelt.reason_against_seatbelt.cache_clear()


def test_command_starts_with_the_profile_and_private_folders(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seatbelt, "reason_against_seatbelt", lambda: "")
    rules = PathRules(folder=workspace, readable=["/usr/bin"], files={"/etc/gitconfig": b"[user]"})
    given = {"PATH": "/usr/bin:/opt/secret/bin", "GIT_CONFIG_SYSTEM": "/etc/gitconfig"}
    with confine_with_seatbelt(rules, given) as launch:
        assert launch.prefix[0] == seatbelt.SANDBOX_EXEC and launch.prefix[-2] == "-p"
        assert launch.environment["PATH"] == "/usr/bin"
        assert Path(launch.environment["GIT_CONFIG_SYSTEM"]).read_bytes() == b"[user]"
        assert Path(launch.environment["HOME"]).is_dir() and Path(launch.environment["TMPDIR"]).is_dir()
    assert not Path(launch.environment["HOME"]).exists()
    with pytest.raises(SandboxRefused, match="another user"), confine_with_seatbelt(replace(rules, owner=(5, 5)), {}):
        pass
