"""`swarm up` where a fleet works already: refused, unless more role processes are asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.test_cli import ECHO, line_with, ok, running, swarm
from tests.support.fleet import ROLES, lay_out


@pytest.fixture
def root(tmp_path: Path) -> Path:
    lay_out(tmp_path, {"echo": ECHO}, settings={"worker": {"drain_seconds": 1}})
    return tmp_path


def test_second_fleet_of_a_folder_is_refused_unless_it_is_wanted(root: Path) -> None:
    with running(root, "store", "serve") as store:
        line_with(store, "export FIRESTORE_EMULATOR_HOST=")
        with running(root, "up") as first:
            line_with(first, "role processes")
            while len(ok(root, "agents")) < len(ROLES):
                pass
            refused = swarm(root, "up")
            assert (refused.returncode, refused.stdout) == (1, "")
            assert "a fleet already works on this folder: 5 agents (architect, executor, memory," in refused.stderr
            for option in (("--join",), ("--roles", "scout"), ("--replicas", "scout=2")):
                with running(root, "up", *option) as second:
                    assert "role processes" in line_with(second, "role processes")
        with running(root, "up") as third:
            line_with(third, "role processes")
