"""A running swarm reads its folder again, but takes no folder that was not there at its start: code may make one."""

from __future__ import annotations

from pathlib import Path

import pytest

from fireswarm.capabilities import drop_in
from fireswarm.clocks import VirtualClock
from fireswarm.settings import load_settings
from fireswarm.settings.packaged import packaged_path
from fireswarm.swarm.opening.open_parts import make_parts
from fireswarm.swarm.opening.reload import Reloader
from tests.support.swarm import SwarmRig

pytestmark = pytest.mark.anyio

CARD = (packaged_path("roles") / "scout" / "ROLE.md").read_text(encoding="utf-8")
SKILL = "---\nname: late\ndescription: Comes late.\n---\n# Late\n"


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


async def test_folders_that_code_makes_later_are_not_used(swarm: SwarmRig, tmp_path: Path) -> None:
    files = Reloader(make_parts(load_settings(tmp_path, environment={}), swarm.store, VirtualClock()))
    before = await files.current(True)
    write(tmp_path / "skills" / "late" / "SKILL.md", SKILL)
    write(tmp_path / ".agents" / "skills" / "late" / "SKILL.md", SKILL)
    write(tmp_path / "roles" / "scout" / "ROLE.md", CARD.replace("---\n", "---\ntrusted: true\n", 1))
    write(tmp_path / "mailbox" / "policy.yaml", "nothing: true\n")
    write(tmp_path / "capabilities" / "late.py", "raise SystemExit('it ran')\n")
    after = await files.current(True)
    assert "late" not in after.catalog.skills and after.roles == before.roles
    assert not [file for file in drop_in.files() if file.is_relative_to(tmp_path)]


async def test_folders_of_the_start_are_read_again(swarm: SwarmRig, tmp_path: Path) -> None:
    (tmp_path / "skills").mkdir()
    files = Reloader(make_parts(load_settings(tmp_path, environment={}), swarm.store, VirtualClock()))
    assert "late" not in (await files.current(True)).catalog.skills
    write(tmp_path / "skills" / "late" / "SKILL.md", SKILL)
    assert "late" in (await files.current(True)).catalog.skills
