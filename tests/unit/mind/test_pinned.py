"""A demo_safe run: scripts of the skill in use run from a copy, whatever happens to the files that were judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from fireswarm.contracts.grant import Grant
from fireswarm.contracts.skills.permissions import YES
from fireswarm.contracts.skills.skill import Question
from fireswarm.errors import SandboxRefused
from fireswarm.mind.commands.pinned import PinnedScripts
from fireswarm.mind.gate import command_call
from fireswarm.skills.packs.catalog import Skill
from tests.support.experts import Expert, bash, calls, run
from tests.support.minds import Bench

SKILL = "---\nname: tidy\ndescription: Tidies greetings.\n---\nRun scripts/tidy.sh.\n"
SCRIPT = 'read text < "${0%/*}/../text.txt"; echo "$text" > made; echo "at $0"\n'


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path).set(runtime__profile="demo_safe")
    bench.skill("tidy", SKILL, {"scripts/tidy.sh": SCRIPT, "text.txt": "as judged\n"})
    return bench


@pytest.mark.anyio
async def test_only_a_copy_of_the_scripts_of_the_skill_writes(bench: Bench) -> None:
    scripts = bench.skills / "tidy" / "scripts"
    (bench.cwd / "link.sh").symlink_to(scripts / "tidy.sh")
    grant = Grant(bench.cwd, "demo_safe")
    expert = Expert(calls(bash("sh link.sh && sh link.sh > /dev/null; sh made")), calls(bash("sh link.sh")), "Done.")
    await run(bench, expert, named="tidy", grant=grant)
    refused, ran = expert.told
    assert "ead-only" in refused or "ermission" in refused, "another command than the skill's scripts writes nothing"
    assert (bench.cwd / "made").read_text() == "as judged\n"
    assert str(scripts) not in ran and "fireswarm-skill-" in ran


@pytest.mark.anyio
async def test_link_that_is_exchanged_while_a_person_decides_writes_nothing(bench: Bench) -> None:
    (bench.cwd / "link.sh").symlink_to(bench.skills / "tidy" / "scripts" / "tidy.sh")
    (bench.cwd / "evil.sh").write_text("echo evil > made\n")

    async def exchange(question: Question) -> str:
        (bench.cwd / "link.sh").unlink()
        (bench.cwd / "link.sh").symlink_to("evil.sh")
        return YES

    grant = Grant(bench.cwd, "demo_safe", ask=("Bash",))
    await run(bench, Expert(calls(bash("sh link.sh")), "Done."), named="tidy", grant=grant, ask=exchange)
    assert not (bench.cwd / "made").exists()


def test_copy_stays_as_it_was_when_the_skill_changes(tmp_path: Path) -> None:
    folder = tmp_path / "tidy"
    (folder / "scripts").mkdir(parents=True)
    script = folder / "scripts" / "tidy.sh"
    script.write_text("echo judged")
    skill, pinned = Skill("tidy", "Tidies.", folder), PinnedScripts()
    line, copied = pinned.pin(command_call(f"sh {script} 'a b' && bash {script}", tmp_path), skill)
    script.write_text("echo exchanged")
    own = copied.folder / "scripts" / "tidy.sh"
    assert (line, own.read_text()) == (f"sh {own} 'a b' && bash {own}", "echo judged")
    script.unlink()
    script.symlink_to("/bin/ls")
    with pytest.raises(SandboxRefused, match="changed"):
        pinned.pin(command_call(f"sh {script}", tmp_path), skill)
    pinned.remove()
    assert not copied.folder.exists()
