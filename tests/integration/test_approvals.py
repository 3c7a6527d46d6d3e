"""An action that needs an approval blocks its task; the run goes on there, or the model is told of the denial."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fireswarm.capabilities.session_files.capability import SessionFiles, SessionFilesConfig
from fireswarm.capabilities.session_files.storage import StoreShelf
from fireswarm.contracts.llm.chat import ChatRequest
from fireswarm.contracts.ports import Merge, Write
from fireswarm.contracts.skills.capability import CapabilityUse
from fireswarm.contracts.skills.permissions import MAX_DIFF_CHARS, StricterPermissions
from fireswarm.contracts.skills.skill import Reply
from fireswarm.contracts.swarm.role import RoleCard
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskStatus
from fireswarm.errors import InvalidInput, PolicyRefused, StaleAnswer
from fireswarm.settings.agent import PermissionSettings
from fireswarm.skills.packs.catalog import load_catalog
from fireswarm.skills.routing.router import Router
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.records.mailbox import Mailbox
from fireswarm.swarm.worker import answers_by_mail, mail
from tests.integration.test_answers_by_mail import new, outcome
from tests.integration.test_thinking import (
    Killed,
    act,
    answers_so_far,
    decide,
    logged,
    one_turn,
    reclaimed,
    submit,
    told,
    was_killed,
)
from tests.integration.test_thinking import thinking as thinking_swarm
from tests.support.swarm import SwarmRig, open_test_swarm

pytestmark = pytest.mark.anyio

ASKS = {"permissions": {"ask": ["Bash(tee:*)"]}}
COMMAND = "echo made | tee -a log.txt"
CODE = "from fireswarm import SkillResult\n\n\ndef run(request):\n    return SkillResult(summary='ran')\n"
TIMED = "date +%s%N | tee -a log.txt"
"""A command with another output each time, so that repeating it is progress."""


class Model:
    """Runs one command that needs an approval, then finishes with what it was told."""

    def __init__(self, *commands: str) -> None:
        self.asked: list[int] = []
        self.commands = commands or (COMMAND,)

    def __call__(self, request: ChatRequest) -> dict[str, Any]:
        turn = answers_so_far(request)
        self.asked.append(turn)
        if turn < len(self.commands):
            return decide(act("run_command", command=self.commands[turn]))
        return decide(act("finish", answer=told(request).strip().removeprefix("refused: ")))


def thinking(swarm: SwarmRig, model: Any, folder: Path, **settings: Any) -> SwarmParts:
    return thinking_swarm(swarm, model, folder, **(ASKS | settings))


def request_of(task: Task) -> str:
    """Return the id of the open request."""
    assert (task.status, task.status_reason) == (TaskStatus.BLOCKED, StatusReason.APPROVAL_REQUIRED), task.summary
    assert task.questions[0].approval is not None
    return task.questions[0].key


async def test_an_approved_command_runs_once_a_day_later_in_another_process(swarm: SwarmRig, tmp_path: Path) -> None:
    model = Model()
    await submit(swarm, tmp_path)
    waiting = await one_turn(swarm, thinking(swarm, model, tmp_path))
    approval = waiting.questions[0].approval
    assert approval is not None
    assert (approval.tool, approval.shown, approval.rule) == ("Bash", COMMAND, f"Bash({COMMAND})")
    assert "Bash(tee:*)" in approval.because and COMMAND in waiting.summary
    assert f"swarm approve {waiting.task_id[:8]} --question 1-1" in await swarm.board.explain(waiting)
    assert logged(tmp_path) == [], "nothing runs before it is approved"
    await swarm.clock.advance(86_400)
    await swarm.board.answer(waiting.task_id, {request_of(waiting): "yes"})
    done = await one_turn(swarm, thinking(swarm, model, tmp_path), "another")
    assert done.result is not None and done.result.summary == "made"
    assert (logged(tmp_path), model.asked) == (["made"], [0, 1])
    assert done.answers == {}, "no skill takes the approval for an answer to its own question"


async def test_the_model_is_told_of_a_denial_and_its_reason(swarm: SwarmRig, tmp_path: Path) -> None:
    await submit(swarm, tmp_path)
    waiting = await one_turn(swarm, thinking(swarm, Model(), tmp_path))
    decision, reason = waiting.questions
    await swarm.board.answer(waiting.task_id, {decision.key: "no", reason.key: "use another file"})
    done = await one_turn(swarm, thinking(swarm, Model(), tmp_path), "another")
    assert done.result is not None and "a person denied this action: use another file" in done.result.summary
    assert logged(tmp_path) == []


async def test_always_allows_the_same_command_later_but_no_other(swarm: SwarmRig, tmp_path: Path) -> None:
    model = Model(TIMED, TIMED, "echo other | tee -a log.txt")
    await submit(swarm, tmp_path)
    first = await one_turn(swarm, thinking(swarm, model, tmp_path))
    await swarm.board.answer(first.task_id, {request_of(first): "always"})
    second = await one_turn(swarm, thinking(swarm, model, tmp_path), "another")
    assert len(logged(tmp_path)) == 2
    approval = second.questions[0].approval
    assert approval is not None and approval.shown == "echo other | tee -a log.txt"
    with pytest.raises(StaleAnswer):
        await swarm.board.answer(second.task_id, {request_of(first): "yes"})


async def test_an_approval_of_one_step_is_not_one_of_the_next(swarm: SwarmRig, tmp_path: Path) -> None:
    model = Model(TIMED, TIMED)
    await submit(swarm, tmp_path)
    for _ in range(2):
        waiting = await one_turn(swarm, thinking(swarm, model, tmp_path))
        await swarm.board.answer(waiting.task_id, {request_of(waiting): "yes"})
    await one_turn(swarm, thinking(swarm, model, tmp_path))
    assert (len(logged(tmp_path)), model.asked) == (2, [0, 1, 2])


@pytest.mark.parametrize("answers", [{"approval": "maybe"}, {"approval": True}, {"other": "yes"}, {}])
async def test_only_the_offered_decisions_are_taken(swarm: SwarmRig, tmp_path: Path, answers: dict[str, Any]) -> None:
    await submit(swarm, tmp_path)
    waiting = await one_turn(swarm, thinking(swarm, Model(), tmp_path))
    with pytest.raises(InvalidInput):
        await swarm.board.answer(waiting.task_id, answers)


async def test_an_approval_written_by_hand_counts(swarm: SwarmRig, tmp_path: Path) -> None:
    await submit(swarm, tmp_path)
    waiting = await one_turn(swarm, thinking(swarm, Model(), tmp_path))
    by_hand = {"answers": {"approval": "yes"}, "status": "queued"}
    await swarm.store.commit([Merge(f"agent_tasks/{waiting.task_id}", by_hand)])
    done = await one_turn(swarm, thinking(swarm, Model(), tmp_path), "another")
    assert (done.status, logged(tmp_path)) == (TaskStatus.DONE, ["made"])


async def test_no_agent_approves_the_action_of_another(swarm: SwarmRig, tmp_path: Path) -> None:
    await submit(swarm, tmp_path)
    waiting = await one_turn(swarm, thinking(swarm, Model(), tmp_path))
    policy = swarm.core.mailbox.policy.model_copy(update={"answers": {"*": ("*",)}})
    mailbox = Mailbox(swarm.store, swarm.clock, policy)
    reply = Reply(task_id=waiting.task_id, answers={"approval": "yes"})
    with pytest.raises(PolicyRefused, match="only the operator"):
        await mailbox.replies(waiting, (reply,))
    message_id = await mailbox.answer(waiting, {"approval": "yes"}, "operator")
    await swarm.store.commit([Merge(f"agent_mailbox/{message_id}", {"from_agent_id": "scout"})])
    core = replace(swarm.core, mailbox=mailbox)
    for snapshot in await new(swarm):
        await mail.act_on(core, "scout", snapshot, answers_by_mail.give_answers)
    assert "only the operator" in await outcome(swarm, message_id)
    assert (await swarm.task(waiting.task_id)).status is TaskStatus.BLOCKED


async def test_an_envelope_of_the_operator_approves(swarm: SwarmRig, tmp_path: Path) -> None:
    await submit(swarm, tmp_path)
    waiting = await one_turn(swarm, thinking(swarm, Model(), tmp_path))
    await swarm.core.mailbox.answer(waiting, {"approval": "yes"}, "operator")
    for snapshot in await new(swarm):
        await mail.act_on(swarm.core, "scout", snapshot, answers_by_mail.give_answers)
    await one_turn(swarm, thinking(swarm, Model(), tmp_path), "another")
    assert logged(tmp_path) == ["made"]


@pytest.mark.parametrize("place", ["card", "task"])
async def test_role_cards_and_tasks_can_deny(swarm: SwarmRig, tmp_path: Path, place: str) -> None:
    stricter = StricterPermissions(deny=("Bash(tee:*)",))
    core = thinking(swarm, Model(), tmp_path)
    constraints: dict[str, Any] = {}
    if place == "card":
        strict: dict[str, RoleCard] = {
            name: card.model_copy(update={"permissions": stricter}) for name, card in core.roles.items()
        }
        core = replace(core, roles=strict)
    else:
        constraints = {"permissions": stricter.model_dump(mode="json")}
    await submit(swarm, tmp_path, constraints=constraints)
    done = await one_turn(swarm, core)
    assert done.result is not None and "the permissions deny Bash(tee:*)" in done.result.summary
    assert logged(tmp_path) == []


async def test_a_skill_that_may_write_is_refused_to_a_read_only_task(swarm: SwarmRig, tmp_path: Path) -> None:
    for name, writes in (("silent", ""), ("writer", '  writes: "true"\n'), ("reader", '  writes: "false"\n')):
        folder = tmp_path / "skills" / name
        folder.mkdir(parents=True)
        header = f"name: {name}\ndescription: does {name} things\nmetadata:\n  entry: skill.py\n{writes}"
        (folder / "SKILL.md").write_text(f"---\n{header}---\n# {name}\n")
        (folder / "skill.py").write_text(CODE)
    core = replace(swarm.core, catalog=load_catalog([tmp_path / "skills"]))
    ended: dict[str, TaskStatus] = {}
    for name in ("silent", "writer", "reader"):
        await swarm.submit(f"do {name}", skill=name, constraints={"read_only": True})
        task = await one_turn(swarm, core)
        ended[name] = task.status
        assert name == "reader" or "the task is read_only" in str(task.error)
    assert ended == {"silent": TaskStatus.BLOCKED, "writer": TaskStatus.BLOCKED, "reader": TaskStatus.DONE}


@pytest.mark.parametrize("setting", ["block", "warn"])
async def test_a_skill_that_names_scripts_of_other_folders_runs_nothing(
    swarm: SwarmRig, tmp_path: Path, setting: str
) -> None:
    def model(request: ChatRequest) -> dict[str, Any]:
        turn = answers_so_far(request)
        step = [act("use_skill", name="borrower", reason="x"), act("run_command", command="echo ran >> log.txt")]
        return decide(step[turn] if turn < 2 else act("finish", answer=told(request)))

    core = thinking(swarm, model, tmp_path, skills={"outside_scripts": setting})
    folder = tmp_path / "skills" / "borrower"
    folder.mkdir(parents=True)
    header = "name: borrower\ndescription: counts things.\nmetadata: {entry: skill.py}"
    (folder / "SKILL.md").write_text(f"---\n{header}\n---\n# Borrower\n\nRun `../other/run.sh`.\n")
    (folder / "skill.py").write_text(CODE)
    catalog = load_catalog([tmp_path / "skills"])
    assert core.mind is not None
    core = replace(core, catalog=catalog, mind=replace(core.mind, catalog=catalog, router=Router(catalog)))
    core = replace(core, roles={"scout": core.roles["scout"].model_copy(update={"skills": ("borrower",)})})
    task = await submit(swarm, tmp_path)
    ended = await one_turn(swarm, core)
    assert logged(tmp_path) == (["ran"] if setting == "warn" else []), ended
    without_model = await swarm.submit("count", skill="borrower")
    ended = await one_turn(swarm, replace(core, mind=None))
    assert ended.task_id == without_model.task_id != task.task_id
    assert (ended.status is TaskStatus.DONE) is (setting == "warn"), ended
    assert setting == "warn" or "no code of skill 'borrower' may run" in str(ended.error)


@pytest.mark.parametrize(("answer", "status"), [("yes", TaskStatus.DONE), ("no", TaskStatus.BLOCKED)])
async def test_a_skill_that_runs_without_a_model_waits_for_approval(
    swarm: SwarmRig, tmp_path: Path, answer: str, status: TaskStatus
) -> None:
    folder = tmp_path / "skills" / "deploy"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        "---\nname: deploy\ndescription: Deploys.\nmetadata: {entry: skill.py}\n---\n# Deploy\n"
    )
    (folder / "skill.py").write_text(CODE)
    settings = swarm.core.settings.model_copy(update={"permissions": PermissionSettings(ask=("Skill(deploy)",))})
    core = replace(swarm.core, catalog=load_catalog([tmp_path / "skills"]), settings=settings)
    await swarm.submit("deploy it", skill="deploy", context={"to": "production"})
    waiting = await one_turn(swarm, core)
    approval = waiting.questions[0].approval
    assert approval is not None and approval.shown == 'deploy {"to": "production"}'
    await swarm.board.answer(waiting.task_id, {request_of(waiting): answer})
    ended = await one_turn(swarm, core, "another")
    assert ended.status is status
    assert (ended.result is not None and ended.result.summary == "ran") is (answer == "yes")


async def test_a_plans_task_keeps_the_rules_of_its_parent(swarm: SwarmRig, tmp_path: Path) -> None:
    plan = {"tasks": [{"key": "look", "assigned_to": "scout", "objective": "look", "constraints": {"permissions": {}}}]}

    def script(request: ChatRequest) -> dict[str, Any]:
        if "You may" in request.messages[0].text or "# Tasks of your plan" in request.messages[0].text:
            return decide(act("finish", answer="looked"))
        return decide(act("finish", answer="a plan", result=plan))

    rules = {"permissions": {"deny": ["Bash(tee:*)"], "ask": []}}
    await submit(swarm, tmp_path, role="architect", constraints=rules)
    await one_turn(swarm, thinking(swarm, script, tmp_path), role="architect")
    [child] = [task for task in await swarm.board.list() if task.parent_task_id]
    assert child.constraints.permissions.deny == ("Bash(tee:*)",)


async def test_an_approval_is_asked_once_whenever_the_process_dies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process is killed after each of its commits; the command runs once, after one approval."""
    number, over = 0, False
    while not over:
        number += 1
        over = await approved_despite_a_kill(tmp_path / f"c{number}", monkeypatch, number)
    assert number > 4


async def approved_despite_a_kill(folder: Path, monkeypatch: pytest.MonkeyPatch, kill_at: int) -> bool:
    """Work until the task is done; the process dies at commit *kill_at*. Returns True if there were fewer commits."""
    model, made, requests = Model(), 0, 0
    async with open_test_swarm() as swarm:
        asked = await submit(swarm, folder)
        real: Callable[..., Any] = swarm.store.commit

        async def commit(writes: list[Write], **options: Any) -> Any:
            nonlocal made
            done = await real(writes, **options)
            made += 1
            if made == kill_at:
                raise Killed
            return done

        monkeypatch.setattr(swarm.store, "commit", commit)
        for _ in range(8):
            task = await swarm.task(asked.task_id)
            try:
                if task.status is TaskStatus.DONE:
                    break
                if task.status_reason is StatusReason.ESCALATED:  # it died while the command ran
                    step = [task.uncertain_step]
                    redo, skip = ([], step) if logged(folder) else (step, [])
                    await swarm.board.retry(task.task_id, redo=redo, skip=skip)
                elif task.status_reason is StatusReason.APPROVAL_REQUIRED:
                    requests += 1
                    await swarm.board.answer(task.task_id, {request_of(task): "yes"})
                else:
                    await one_turn(swarm, thinking(swarm, model, folder))
            except ValueError:  # it died before the task could be claimed
                await reclaimed(swarm)
            except BaseException as error:
                if not was_killed(error):
                    raise
                await reclaimed(swarm)
        task = await swarm.task(asked.task_id)
        assert task.status is TaskStatus.DONE, f"killed at {kill_at}: {task.summary}"
        assert (requests, len(logged(folder))) == (1, 1), f"killed at {kill_at}"
    monkeypatch.undo()
    return made < kill_at


async def test_the_diff_of_a_write_is_shown_and_approved_with_it(swarm: SwarmRig, tmp_path: Path) -> None:
    files = SessionFiles(StoreShelf(swarm.store, "s1"), SessionFilesConfig())
    await files.write_file("/note.txt", "one\n")

    def script(request: ChatRequest) -> dict[str, Any]:
        if not answers_so_far(request):
            return decide(act("write_file", path="/note.txt", content="two\n"))
        return decide(act("finish", answer="done"))

    core = thinking(swarm, script, tmp_path, permissions={"ask": ["write_file(/note*)"]})
    card = core.roles["scout"].model_copy(update={"capabilities": (CapabilityUse(id="session_file_system"),)})
    core = replace(core, roles={**core.roles, "scout": card})
    await submit(swarm, tmp_path)
    waiting = await one_turn(swarm, core)
    approval = waiting.questions[0].approval
    assert approval is not None and approval.diff.splitlines()[-2:] == ["-one", "+two"]
    await files.write_file("/note.txt", "changed meanwhile\n")
    await swarm.board.answer(waiting.task_id, {request_of(waiting): "yes"})
    again = await one_turn(swarm, core)
    assert again.questions[0].approval is not None and "-changed meanwhile" in again.questions[0].approval.diff
    await swarm.board.answer(again.task_id, {request_of(again): "yes"})
    assert (await one_turn(swarm, core)).status is TaskStatus.DONE
    assert (await files.read_file("/note.txt"))["content"] == "two\n"


async def test_a_change_too_long_for_the_task_is_cut_and_all_of_it_can_be_read(swarm: SwarmRig, tmp_path: Path) -> None:
    names = [f"name_{number}" for number in range(9_000)]
    (tmp_path / "space").mkdir(exist_ok=True)
    (tmp_path / "space/big.py").write_text("".join(f"{name} = old\n" for name in names))

    def model(request: ChatRequest) -> dict[str, Any]:
        change = {"path": "big.py", "old_text": "= old", "new_text": "= new", "replace_all": True}
        return decide(act("edit_file", **change) if not answers_so_far(request) else act("finish", answer="done"))

    await submit(swarm, tmp_path)
    waiting = await one_turn(swarm, thinking_swarm(swarm, model, tmp_path, permissions={"ask": ["Edit"]}), "another")
    approval = waiting.questions[0].approval
    assert approval is not None and approval.whole_diff and len(approval.diff) <= MAX_DIFF_CHARS + 2_000
    last = approval.diff.splitlines()[-1]
    assert "of 18,003 lines are shown" in last and approval.whole_diff in last
    whole = (await swarm.core.blobs.get(approval.whole_diff)).decode()
    assert all(f"-{name} = old" in whole and f"+{name} = new" in whole for name in names[::500])
