"""What runs again after a crash: only what says that it may, or that it writes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from fireswarm.capabilities.capability import tool
from fireswarm.contracts.skills.skill import SkillRequest, SkillResult
from fireswarm.skills.functions import skill
from fireswarm.skills.packs.catalog import load_catalog

CASES = [
    ("", False),
    ('  idempotent: "true"', True),
    ("  idempotent: true", True),
    ('  idempotent: "false"', False),
    ("  idempotent: perhaps", False),
    ('  writes: "false"', True),
    ('  writes: "unless_read_only"', False),
    ('  writes: "true"', False),
    ('  writes: "false"\n  idempotent: "false"', False),
    ('  writes: "true"\n  idempotent: "true"', True),
]


@pytest.mark.parametrize(("lines", "again"), CASES)
def test_a_pack_runs_again_only_if_it_says_so(tmp_path: Path, lines: str, again: bool) -> None:
    folder = tmp_path / "mailer"
    folder.mkdir()
    (folder / "SKILL.md").write_text(
        f'---\nname: mailer\ndescription: mails\nmetadata:\n  version: "1"\n{lines}\n---\n'
    )
    assert load_catalog([tmp_path]).get("mailer").idempotent is again


@pytest.mark.parametrize(
    ("writes", "declared", "again"), [(True, False, False), (True, True, True), (False, False, True)]
)
def test_a_function_runs_again_only_if_it_says_so(writes: bool, declared: bool, again: bool) -> None:
    @skill("mailer", "mails", writes=writes, idempotent=declared)
    def mailer(request: SkillRequest) -> SkillResult:
        return SkillResult(summary=request.objective)

    assert mailer.listing().idempotent is again


@pytest.mark.parametrize(
    ("writes", "declared", "again"),
    [(True, None, False), (True, True, True), (False, None, True), (False, False, False)],
)
def test_a_tool_runs_again_only_if_it_says_so(writes: bool, declared: bool | None, again: bool) -> None:
    def send(text: str) -> str:
        """Send a text."""
        return text

    assert tool(writes=writes, idempotent=declared)(send).idempotent is again
