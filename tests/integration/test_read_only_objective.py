"""A read_only objective leaves a real folder byte for byte as it was, whatever a model, a plan or a skill tries."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from fireswarm.contracts.base import JsonObject
from fireswarm.contracts.swarm.constraints import Constraints
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskSpec, TaskStatus
from fireswarm.errors import SandboxRefused
from fireswarm.processes.confinement.skill_view import SkillView
from fireswarm.runs.sinks.run_reader import read_events
from fireswarm.settings import Settings
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.build import parse_task
from fireswarm.swarm.opening.open_parts import open_parts
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.worker.loop import Worker
from tests.support.pipeline import DEMO, advised, family, files, shipped_advisor, work
from tests.support.swarm import SwarmRig
from tests.unit.skills.test_confined_skill import ATTACKS, HEAD, TAIL, state

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap runs on Linux")]

COMMANDS = (
    "echo x > a.txt",
    "sed -i s/a/b/ a.txt",
    "git -c core.fsmonitor='touch fsmonitor' status",
    "git -c user.name=a -c user.email=a@b commit -qam x",
    "printf 'a%n' a.txt; sort -o a.txt a.txt",
    "find . -delete",
    'python3 -c \'open("new", "w")\'',
    "cp /etc/passwd . && mv a.txt b.txt",
    "chmod 777 a.txt; ln -s / root; mkdir new",
    "npm init -y; tar cf a.tar .",
)
MODEL = '''
import json

COMMANDS = {commands!r}


def tool(called, /, **given):
    return dict(calls=[dict(name=called, input=given)])


def answer(request):
    """The architect attacks by commands and plans; its task for the executor attacks by all that the role has."""
    turn = sum(message.role == "assistant" for message in request.messages)
    if "# Tasks of your plan" in request.messages[0].text:
        return "attacked"
    attacks = [tool("run_command", command=f"({{line}}) || true") for line in COMMANDS]
    if "You plan." in request.system:
        loose = dict(read_only=False, demo_safe=False)
        plan = [dict(key="attack", assigned_to="executor", objective="attack it", constraints=loose),
                dict(key="look", assigned_to="executor", objective="look", skill="attack", constraints=loose)]
        attacks.append(tool("finish", answer="a plan", result=dict(tasks=plan)))
    else:
        attacks += [
            tool("use_skill", name="attack", reason="x"),
            tool("use_skill", name="careless", reason="x"),
            tool("mcp_test__change", name="a.txt"),
            tool("mcp_test__look", name="a.txt"),
            tool("write_file", path="a.txt", content="x"),
            tool("execute_code", code="open('a.txt', 'w').write('x')"),
            "attacked",
        ]
    return attacks[turn]
'''
ROLE = """---
name: {name}
description: {words}
skills: [attack, careless]
capabilities: [workspace, session_file_system, sandbox, {{id: mcp, config: {{servers: {{test: {server}}}}}}}]
---
{words}
"""
CARELESS = "from pathlib import Path\n\n\ndef run(request):\n    Path(request.context['path'], 'careless').touch()\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with files, which nothing may change."""
    try:
        with SkillView(tmp_path, tmp_path).confine({}):
            pass
    except SandboxRefused as error:
        pytest.skip(str(error))
    repository = tmp_path / "target"
    shutil.copytree(DEMO, repository / "demo")
    (repository / "a.txt").write_text("b\na\n")
    for arguments in (
        ("init", "-q"),
        ("add", "-A"),
        ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"),
    ):
        subprocess.run(["git", *arguments], cwd=repository, check=True, capture_output=True)
    return repository


def lay_out(root: Path) -> Settings:
    """Write roles, skills and the model, and return the settings of a swarm with them."""
    server = {"command": sys.executable, "args": ["-P", str(Path("tests/support/mcp_server.py").resolve())]}
    for name, words in (("architect", "You plan."), ("executor", "You execute.")):
        (root / "roles" / name).mkdir(parents=True)
        card = ROLE.format(name=name, words=words, server=json.dumps(server))
        (root / "roles" / name / "ROLE.md").write_text(card)
    steps = (f"    with trying():\n        {body}\n    met({name!r})\n" for name, body in ATTACKS.items())
    for name, source in (("attack", HEAD + "".join(steps) + TAIL), ("careless", CARELESS)):
        (root / "skills" / name / "scripts").mkdir(parents=True)
        (root / "skills" / name / "scripts" / "skill.py").write_text(source)
        writes = 'writes: "false"' if name == "attack" else 'version: "1.0.0"'
        head = f"name: {name}\ndescription: Attacks.\nmetadata: {{entry: scripts/skill.py, {writes}}}"
        (root / "skills" / name / "SKILL.md").write_text(f"---\n{head}\n---\n")
    (root / "model.py").write_text(MODEL.format(commands=COMMANDS))
    return Settings.model_validate(
        {
            "root": root,
            "session": "s",
            "store": {"uri": "memory"},
            "model": {"provider": "scripted", "script": "model.py:answer"},
            "runtime": {"max_turns": 40},
        }
    )


async def test_objective_of_a_hostile_model_changes_nothing(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    before = state(folder)
    context: JsonObject = {"path": str(folder), "home": str(tmp_path / "home"), "pids": []}
    async with open_parts(lay_out(tmp_path / "root"), thinks=True) as swarm:
        spec = TaskSpec(
            objective="improve it",
            assigned_to="architect",
            session_hash="s",
            context=context,
            constraints=Constraints(read_only=True),
        )
        root = await finished(swarm, (await swarm.board.submit(spec)).task)
        tasks = {task.plan_key or "root": task for task in await swarm.board.list()}
        told = {name: await steps(swarm, task) for name, task in tasks.items()}
    assert state(folder) == before
    assert list((tmp_path / "home").iterdir()) == []
    assert (root.status, root.summary) == (TaskStatus.DONE, "attacked"), told
    assert {name: task.status for name, task in tasks.items()} == dict.fromkeys(tasks, TaskStatus.DONE), {
        name: (task.summary, task.error) for name, task in tasks.items()
    }
    assert all(task.constraints.read_only for task in tasks.values())
    assert min(len(told["attack"]), len(told["look"])) >= len(COMMANDS) + 6, told
    assert "has code that may write" in "".join(told["attack"])


async def finished(swarm: SwarmParts, task: Task) -> Task:
    """Let both roles work until *task* has ended, and return it."""
    workers = [Worker(swarm, role, f"{role}-1") for role in ("architect", "executor")]
    with anyio.fail_after(120):
        async with anyio.create_task_group() as group, swarm.store.listen(queries.chain(task.task_id)) as snapshots:
            for worker in workers:
                group.start_soon(worker.run)
            async for found in snapshots:
                seen = parse_task(found[0].data, found[0].path)
                if seen.status.terminal or seen.status_reason in (StatusReason.ESCALATED, StatusReason.DEAD_LETTER):
                    for worker in workers:
                        worker.stop()
                    return seen
    raise AssertionError("the listener ended")


async def steps(swarm: SwarmParts, task: Task) -> list[str]:
    run = await swarm.store.get(f"agent_runs/{task.run_id(task.epoch)}")
    return [str(event) for event in await read_events(swarm.store, run) if event["type"] == "skill_step_executed"]


async def test_pipeline_in_a_read_only_task_tests_its_code_and_changes_nothing(swarm: SwarmRig, folder: Path) -> None:
    before = state(folder)
    root = await swarm.submit(
        "make a node",
        role="architect",
        skill="node-pipeline",
        context={"source": str(folder / "demo" / "Linkshelf.node.ts"), "repository": str(folder)},
        constraints=Constraints(read_only=True),
    )
    await work(swarm, advised(swarm, shipped_advisor()))
    assert state(folder) == before
    tasks = await family(swarm, root)
    assert {name: task.status for name, task in tasks.items()} == dict.fromkeys(tasks, TaskStatus.DONE), {
        name: task.summary for name, task in tasks.items()
    }
    left = await files(swarm, tasks["root"])
    assert json.loads(left["validation.json"])["passed"] is True
    assert "pull_request.patch" in left
