"""Background commands of a model: read, stopped, bound by the rules of others, and ended with their run."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from fireswarm.contracts.grant import Grant
from fireswarm.contracts.llm.chat import ChatRequest
from fireswarm.contracts.skills.permissions import StricterPermissions
from fireswarm.contracts.skills.tool import Tool
from fireswarm.contracts.swarm.constraints import Constraints
from fireswarm.llm.providers.scripted import ScriptedModel
from fireswarm.mind import ConclusionStatus
from fireswarm.mind.commands.background import LOST, MAX_RUNNING
from tests.support.crashes import EVERYWHERE, choose_moments
from tests.support.experts import Expert, bash, calls, run
from tests.support.minds import Bench
from tests.support.patience import PATIENCE_SECONDS
from tests.unit.mind.test_resumed_run import Killed, agent

pytestmark = pytest.mark.anyio

NAP = f"65.{os.getpid()}"


def naps() -> list[int]:
    listed = psutil.process_iter(["cmdline"])
    return [each.pid for each in listed if NAP in " ".join(each.info["cmdline"] or ())]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path).set(skills__prefilter_min_score=1)


def behind(line: str, **more: Any) -> dict[str, Any]:
    return calls(bash(line, background=True, **more))


def output(name: str = "c1", **more: Any) -> dict[str, Any]:
    return calls(("command_output", {"id": name, **more}))


def stop(name: str = "c1") -> dict[str, Any]:
    return calls(("stop_command", {"id": name}))


async def test_command_is_started_read_and_stopped(bench: Bench) -> None:
    seen = list[list[int]]()

    def stopping(request: ChatRequest) -> dict[str, Any]:
        seen.append(naps())
        return stop()

    answers = [behind(f"echo ready; sleep {NAP}"), output(wait_seconds=60), stopping, output()]
    expert = Expert(*answers, "Done.")
    told = await _outputs(bench, expert)
    assert told[0].startswith("[started c1 in the background: read its output with command_output")
    assert told[1].startswith("ready\n[c1 has been running for ")
    assert told[2] == told[3] == "[no new output]\n[c1 was stopped]"
    assert seen[0] and naps() == []


async def _outputs(bench: Bench, expert: Expert, **assigned: Any) -> list[str]:
    def answer(request: ChatRequest) -> Any:
        given = expert(request)
        return given(request) if callable(given) else given

    ran = await bench.run(ScriptedModel(answer, tools=True), **assigned)
    assert ran.conclusion.status is ConclusionStatus.FINISHED, ran.conclusion
    return expert.told


async def test_model_is_told_of_an_end_that_it_has_not_seen(bench: Bench) -> None:
    (bench.cwd / "pipe").unlink(missing_ok=True)
    os.mkfifo(bench.cwd / "pipe")
    wait = calls(bash("echo go > pipe; cat pipe; sleep 1"))
    expert = Expert(
        behind("read x < pipe; exec 3> pipe; exit 4"), wait, calls(("todo", {"items": []})), output(), "Done."
    )
    await run(bench, expert)
    notes = [message.text for message in expert.requests[-1].messages if message.role == "user"]
    assert sum("[c1 ended with exit code 4]" in note for note in notes) == 1
    assert expert.told[-1] == "[no new output]\n[c1 ended with exit code 4]"


async def test_command_works_in_the_current_folder_and_leaves_it(bench: Bench) -> None:
    (bench.cwd / "deep").mkdir()
    (bench.cwd / "deep" / "er").mkdir()
    expert = Expert(calls(bash("cd deep")), behind("cd er; pwd"), output(wait_seconds=60), calls(bash("pwd")), "Done.")
    await run(bench, expert)
    assert expert.told[2].startswith(f"{bench.cwd}/deep/er\n")
    assert expert.told[3] == f"{bench.cwd}/deep"


async def test_command_of_a_read_only_task_writes_nothing_in_the_background(bench: Bench) -> None:
    line = "(touch made; setsid touch made) 2>&1 | tail -n 1; exit 5"
    expert = Expert(behind(line), output(wait_seconds=60), output(wait_seconds=60), "Done.")
    await run(bench, expert, constraints=Constraints(read_only=True))
    assert "Read-only file system" in expert.told[1] and "exit code 5" in expert.told[2]
    assert list(bench.cwd.iterdir()) == []


async def test_denied_command_is_denied_in_the_background(bench: Bench) -> None:
    grant = Grant(bench.cwd, deny=("Bash(touch:*)",))
    expert = Expert(behind("touch made"), "No.")
    await run(bench, expert, grant=grant)
    assert expert.told == ["refused: the permissions deny Bash(touch:*)"]
    assert list(bench.cwd.iterdir()) == []


async def test_command_that_needs_an_approval_waits_for_it_in_the_background(bench: Bench) -> None:
    grant = Grant(bench.cwd, stricter=StricterPermissions(ask=("Bash(touch:*)",)))
    ran = await run(bench, Expert(behind("touch made"), "Waits."), grant=grant)
    assert ran.conclusion.status is ConclusionStatus.WAITING
    approval = ran.conclusion.questions[0].approval
    assert approval is not None and approval.shown == "touch made\n(in the background, until this run ends)"
    assert list(bench.cwd.iterdir()) == []


async def test_allowed_tools_of_a_skill_bind_the_background(bench: Bench) -> None:
    text = "---\nname: lister\ndescription: Lists files.\nallowed-tools: Bash(ls:*)\n---\nList.\n"
    bench.skill("lister", text)
    expert = Expert(behind("touch made"), "No.")
    await run(bench, expert, named="lister")
    assert expert.told[0].startswith("refused: ")
    assert list(bench.cwd.iterdir()) == []


async def test_without_confinement_a_read_only_task_has_no_background(bench: Bench) -> None:
    bench.set(runtime__confinement="none", skills__prefilter_min_score=1)
    expert = Expert(behind("touch made"), "No.")
    await run(bench, expert, constraints=Constraints(read_only=True))
    assert "which requires confined commands" in expert.told[0]


@pytest.mark.parametrize("asked", [{}, {"timeout_seconds": 900}])
async def test_time_limit_of_a_task_holds_in_the_background(bench: Bench, asked: dict[str, Any]) -> None:
    expert = Expert(behind(f"sleep {NAP}", **asked), output(wait_seconds=60), output(wait_seconds=60), "Done.")
    await run(bench, expert, constraints=Constraints(timeout_seconds=1))
    assert "after 1 s at the latest" in expert.told[0]
    assert any("was killed after 1 s, its time limit]" in told for told in expert.told[1:])
    assert naps() == []


async def test_wait_for_output_is_limited(bench: Bench) -> None:
    bench.set(runtime__timeout_seconds=1, skills__prefilter_min_score=1)
    expert = Expert(behind(f"sleep {NAP}"), output(wait_seconds=10**9), "Done.")
    with anyio.fail_after(PATIENCE_SECONDS):
        await run(bench, expert)
    assert "has been running for 1 s" in expert.told[1]


async def test_number_of_commands_at_one_time_is_limited(bench: Bench) -> None:
    line = bash(f"sleep {NAP}", background=True)
    expert = Expert(calls(*[line] * (MAX_RUNNING + 1)), calls(("stop_command", {"id": "c3"}), line), "Done.")
    await run(bench, expert)
    assert "are running (c1, c2, c3, " in expert.told[MAX_RUNNING]
    assert expert.told[-1].startswith(f"[started c{MAX_RUNNING + 1} ")
    assert naps() == []


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (("run_command", {"command": "ls", "background": "yes"}), "background must be true or false"),
        (("command_output", {}), "unknown command ''; started: none"),
        (("command_output", {"id": ["c1"]}), "unknown command"),
        (("stop_command", {"id": "c\0"}), "unknown command"),
    ],
)
async def test_bad_call_is_explained(bench: Bench, call: tuple[str, dict[str, Any]], told: str) -> None:
    expert = Expert(calls(call), "Done.")
    await run(bench, expert)
    assert told in expert.told[0]


@pytest.mark.parametrize("seconds", [-1, "x", True])
async def test_bad_wait_is_explained(bench: Bench, seconds: Any) -> None:
    expert = Expert(behind("true"), output(wait_seconds=seconds), "Done.")
    await run(bench, expert)
    assert expert.told[1] == "wait_seconds must be a number of at least 0"


async def test_null_stands_for_the_default(bench: Bench) -> None:
    line = bash("echo x", background=None, timeout_seconds=None)
    expert = Expert(calls(line), behind("true"), output(wait_seconds=None), "Done.")
    await run(bench, expert)
    assert expert.told[0] == "x" and expert.told[2].startswith("[no new output]\n[c1 ")


async def test_canceled_run_ends_its_commands(bench: Bench) -> None:
    async def hang(given: Any) -> str:
        assert naps()
        scope.cancel()
        await anyio.sleep_forever()
        return ""

    tools = {"hang": Tool("hang", "Hangs.", {"type": "object", "properties": {}}, hang)}
    expert = Expert(calls(bash(f"setsid sleep {NAP}", background=True), ("command_output", {"id": "c1"}), ("hang", {})))
    with anyio.CancelScope() as scope:
        await run(bench, expert, tools=tools)
    assert scope.cancelled_caught and naps() == []


SERVE = (
    behind(f"echo started >> log; echo ready; sleep {NAP}"),
    calls(("command_output", {"id": "c1", "wait_seconds": 60}), bash("echo b >> log")),
    output(),
    "Done.",
)


async def test_run_killed_at_any_write_starts_no_command_twice(tmp_path: Path) -> None:
    whole = agent(Bench(tmp_path / "whole"), *SERVE)
    await whole.start()
    lost = 0
    for number in choose_moments(whole.writes):
        bench = Bench(tmp_path / str(number))
        interrupted = agent(bench, *SERVE, kill_at=number)
        with pytest.raises((Killed, BaseExceptionGroup)):  # a group, if calls ran side by side
            await interrupted.start()
        assert naps() == [], number
        conclusion = await interrupted.start()
        assert conclusion.answer == "Done.", number
        assert (bench.cwd / "log").read_text().split().count("started") <= 1, number
        lost += LOST in interrupted.expert.told[-1]
        assert naps() == [], number
    assert lost > 5 or not EVERYWHERE


async def test_model_is_told_that_its_command_ended_with_the_process(bench: Bench) -> None:
    seen = ("command_output", {"id": "c1", "wait_seconds": 60})
    begin = calls(bash("echo once >> log; echo once; sleep 60", background=True), seen)
    waiting = agent(bench, begin, calls(("ask_user", {"question": "Who?"})), output(), "Done.")
    assert (await waiting.start()).status is ConclusionStatus.WAITING

    async def answer(_: Any) -> str:
        return "Ada"

    resumed = replace(waiting, asks=answer)
    assert (await resumed.start()).status is ConclusionStatus.FINISHED
    texts = [message.text for message in resumed.expert.requests[-1].messages]
    assert sum(f"[c1 {LOST}]" in text for text in texts) == 1, "it is noted before it is asked for"
    assert resumed.expert.told[-1] == f"[no new output]\n[c1 {LOST}]"
    assert (bench.cwd / "log").read_text() == "once\n"
