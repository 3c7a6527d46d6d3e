"""Control groups do not pile up: what the kernel keeps for a while, or a killed process left, is removed later."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fireswarm.processes.confinement import control_group
from fireswarm.processes.confinement.control_group import PREFIX, new_control_group
from fireswarm.processes.confinement.process_limits import ProcessLimits
from tests.support.processes import own_control_groups

LIMITS = ProcessLimits()


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process in a new group, which ends when its input does."""
    group = new_control_group("sleeper", LIMITS)
    if not group.folders:
        pytest.skip("this process may not make control groups")
    with subprocess.Popen(
        [*group.prefix, "/bin/sh", "-c", "echo in; read line"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process


def test_group_whose_process_outlives_it_is_removed_later(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = [folder for folder in own_control_groups() if folder.name.endswith("-sleeper")]
    monkeypatch.setattr(control_group, "REMOVAL_SECONDS", 0.02)
    control_group.ControlGroup(tuple(mine)).close()
    assert any(folder.exists() for folder in mine), "it has a process"
    assert sleeper.stdin is not None
    sleeper.stdin.close()
    sleeper.wait()
    until = time.monotonic() + 30  # the kernel takes a moment to forget the process
    while any(folder.exists() for folder in mine) and time.monotonic() < until:
        new_control_group("next", LIMITS).close()
    assert not any(folder.exists() for folder in mine)


def test_each_folder_of_a_group_is_tried_whatever_the_first_one_takes(tmp_path: Path) -> None:
    busy, free = tmp_path / "busy", tmp_path / "free"
    (busy / "process").mkdir(parents=True)
    free.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(control_group, "REMOVAL_SECONDS", 0)
        control_group.ControlGroup((busy, free)).close()
    assert busy.exists() and not free.exists()
    (busy / "process").rmdir()
    new_control_group("next", LIMITS).close()
    assert not busy.exists()


def test_groups_of_killed_processes_are_removed_and_those_of_others_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = subprocess.run(["/bin/sh", "-c", "echo $$"], capture_output=True, text=True, check=True).stdout.strip()
    names = [f"{PREFIX}{dead}-a", f"{PREFIX}{os.getpid()}-b", "other"]
    for name in names:
        (tmp_path / name).mkdir()

    def places(_limits: ProcessLimits) -> list[tuple[Path, dict[str, int]]]:
        return [(tmp_path, {})]

    monkeypatch.setattr(control_group, "_places", places)
    new_control_group("young", LIMITS).close()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names), "a minute has not passed"
    control_group._remove_abandoned.cache_clear()  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(control_group, "ABANDONED_SECONDS", -1)
    new_control_group("old", LIMITS).close()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names[1:])
