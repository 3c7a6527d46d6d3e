"""A person corrects a file of a skill or role while the fleet runs: the next turn uses it, and the run says which."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fireswarm as fs
from fireswarm.contracts.swarm.task import StatusReason, TaskStatus
from fireswarm.settings import Settings
from fireswarm.storage.documents.paths import run_path
from tests.support.fleet import lay_out, until
from tests.support.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.anyio

CODE = """
from fireswarm.contracts.skills.skill import SkillResult
from .words import WORD

def run(request):
    if WORD == "broken":
        raise ValueError("a mistake in the skill")
    return SkillResult(summary=WORD)
"""


def write_word(root: Path, word: str) -> None:
    (root / "skills" / "teller" / "scripts" / "words.py").write_text(f"WORD = {word!r}\n")


async def run_task(swarm: Any, objective: str, **fields: Any) -> Any:
    submitted = await swarm.submit(objective, role="scout", skill=fields.pop("skill", "teller"), **fields)

    async def ended() -> bool:
        task = await swarm.get(submitted.task_id)
        return task.status in (TaskStatus.DONE, TaskStatus.BLOCKED) and task.status_reason is not StatusReason.PAUSED

    await until(ended, seconds=PATIENCE_SECONDS, every=0.05, what="the end of the task")
    return await swarm.get(submitted.task_id)


async def hash_of(swarm: Any, task: Any) -> str:
    run = (await swarm.parts.store.get(run_path(task.run_id(task.epoch)))).data
    return next(event["payload"]["hash"] for event in run["events"] if event["type"] == "skill_chosen")


def unconfined(root: Path) -> Settings:
    return Settings.model_validate({"root": root, "runtime": {"confinement": "none"}})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    lay_out(tmp_path, {"teller": CODE}, settings={})
    write_word(tmp_path, "broken")
    return tmp_path


async def test_a_retry_runs_the_corrected_skill(root: Path) -> None:
    async with fs.Swarm.local(settings=unconfined(root), store="memory") as swarm:
        failed = await run_task(swarm, "say it", max_attempts=1)
        assert failed.status_reason is StatusReason.DEAD_LETTER
        write_word(root, "fixed!")  # of the same length, within the same second
        await swarm.retry(failed)
        task = await swarm.wait(failed.task_id)
        assert task.summary == "fixed!"
        again = await run_task(swarm, "say it again")
        assert await hash_of(swarm, task) == await hash_of(swarm, again)
        write_word(root, "third!")
        changed = await run_task(swarm, "say it a third time")
        assert changed.summary == "third!"
        assert await hash_of(swarm, changed) != await hash_of(swarm, again)


async def test_a_new_skill_and_a_changed_role_are_used_without_a_restart(root: Path) -> None:
    write_word(root, "first")
    async with fs.Swarm.local(settings=unconfined(root), store="memory") as swarm:
        assert (await run_task(swarm, "say it")).summary == "first"
        new = root / "skills" / "newer" / "scripts"
        new.mkdir(parents=True)
        (new / "skill.py").write_text(CODE.replace("from .words import WORD", "WORD = 'from the new skill'"))
        header = "name: newer\ndescription: newer of a test\nmetadata:\n  entry: scripts/skill.py\n  writes: 'false'\n"
        (new.parent / "SKILL.md").write_text(f"---\n{header}---\n# newer\n")
        card = root / "roles" / "scout" / "ROLE.md"
        card.write_text(card.read_text().replace("- teller", "- newer\n- teller"))
        task = await swarm.parts.board.submit(
            fs.TaskSpec(objective="say the new one", assigned_to="scout", session_hash="s", skill="newer")
        )

        async def done() -> bool:
            return (await swarm.get(task.task_id)).status is TaskStatus.DONE

        await until(done, seconds=PATIENCE_SECONDS, every=0.1, what="the task of the new skill")


async def test_a_file_that_cannot_be_read_leaves_the_last_good_one_in_use(root: Path) -> None:
    write_word(root, "first")
    async with fs.Swarm.local(settings=unconfined(root), store="memory") as swarm:
        assert (await run_task(swarm, "say it")).summary == "first"
        (root / "roles" / "scout" / "ROLE.md").write_text("---\nname: [\n---\n")
        assert (await run_task(swarm, "say it again", skill=None)).status is TaskStatus.DONE
