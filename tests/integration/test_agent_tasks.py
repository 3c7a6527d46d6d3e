"""The benchmark of twelve tasks: recorded answers pass, and what was not done does not pass, whatever is claimed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
import yaml

from benchmarks.agent_tasks.__main__ import main
from benchmarks.agent_tasks.checks import Leavings, digests_of, failures_of
from benchmarks.agent_tasks.chosen_model import Chosen, choose, provider_of
from benchmarks.agent_tasks.runner import Result, lay_out, program_path, run_all, run_task
from benchmarks.agent_tasks.task import BenchTask, load_task, load_tasks
from fireswarm.errors import ConfigError, SandboxRefused
from fireswarm.settings.agent import RuntimeSettings
from tests.support.fleet import environment
from tests.support.patience import PATIENCE_SECONDS
from tests.support.providers import FakeProviders, Received, Reply

ROOT = Path(__file__).resolve().parents[2]
TASKS = {task.name: task for task in load_tasks()}
TOOLS = {
    *("list_files", "read_file", "search_files", "write_file", "edit_file", "write_artifact"),
    *("run_command", "command_output", "stop_command", "use_skill", "read_skill_file", "todo", "ask_user"),
}
NEVER_ENDS = {"name": "run_command", "input": {"command": "tail -f /dev/null"}}
KEY = "no-key-for-a-local-server"

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def recorded() -> Chosen:
    """The recorded answers; skips where commands cannot be confined."""
    try:
        return choose(None, None, None, 1.0, {})
    except SandboxRefused as error:
        pytest.skip(str(error))


def answers_of(task: BenchTask) -> list[dict[str, Any]]:
    [conversation] = json.loads(task.recording.read_text(encoding="utf-8"))["conversations"]
    return conversation["answers"]


def with_answers(task: BenchTask, folder: Path, answers: Sequence[dict[str, Any]], **fields: Any) -> BenchTask:
    """A copy of a task with other recorded answers, and with other fields in its file."""
    folder.mkdir(parents=True)
    for part in ("project", "hidden"):
        if (task.folder / part).exists():
            (folder / part).symlink_to(task.folder / part)
    recording = {"conversations": [{"role": "Agent", "answers": list(answers)}]}
    (folder / "recording.json").write_text(json.dumps(recording), encoding="utf-8")
    content = yaml.safe_load((task.folder / "task.yaml").read_text(encoding="utf-8"))
    (folder / "task.yaml").write_text(yaml.safe_dump({**content, **fields}), encoding="utf-8")
    return load_task(folder)


# ── recorded answers ──────────────────────────────────────────────────────────────────────────────────


async def test_recorded_answers_pass_all_twelve_tasks_and_use_all_tools(recorded: Chosen, tmp_path: Path) -> None:
    results: list[Result] = []
    await run_all(list(TASKS.values()), recorded, tmp_path, jobs=2, on_result=results.append)
    assert {result.task: result.reasons for result in results} == dict.fromkeys(TASKS, [])
    assert len(results) == 12
    assert {tool for result in results for tool in result.tools} >= TOOLS
    for result in results:
        assert result.usage.turns == len(answers_of(TASKS[result.task])), "no recorded answer is left over"
        assert result.usage.input_tokens > 0
        assert result.usage.usd == 0.0


async def test_untouched_projects_fail_whatever_the_answer_claims(recorded: Chosen, tmp_path: Path) -> None:
    async def judge(task: BenchTask) -> None:
        place = await anyio.to_thread.run_sync(lay_out, task, tmp_path / task.name)
        left = Leavings(place.project, digests_of(place.project))
        silent = await failures_of(task, left, RuntimeSettings(), program_path())
        assert silent, f"{task.name} passes although nothing was done"
        if any(check.kind in ("run", "file", "content") for check in task.file.checks):
            claimed = replace(left, answer=answers_of(task)[-1]["text"])
            told = await failures_of(task, claimed, RuntimeSettings(), program_path())
            assert told, f"{task.name} passes by words"
            assert all(len(reason) > 20 for reason in told)

    for start in range(0, 12, 3):
        async with anyio.create_task_group() as group:
            for task in list(TASKS.values())[start : start + 3]:
                group.start_soon(judge, task)


def test_each_recording_says_that_it_was_written_by_hand() -> None:
    for task in TASKS.values():
        assert "written by hand" in json.loads(task.recording.read_text(encoding="utf-8"))["about"]


# ── cheats ────────────────────────────────────────────────────────────────────────────────────────────


async def test_recording_that_only_claims_success_fails(recorded: Chosen, tmp_path: Path) -> None:
    task = TASKS["fix-failing-test"]
    liar = with_answers(task, tmp_path / "liar", [{"text": answers_of(task)[-1]["text"]}])
    result = await run_task(liar, 1, recorded, tmp_path / "run")
    assert not result.passed
    assert "the project's tests do not pass" in result.reasons[0]


async def test_changed_test_instead_of_code_fails(recorded: Chosen, tmp_path: Path) -> None:
    task = TASKS["fix-failing-test"]
    weaken = 'sed -i \'s/assertTrue(is_open(BAR, "Su", "01:59"))/assertTrue(True)/\' test_hours.py'
    calls = [{"name": "run_command", "input": {"command": weaken}}]
    cheat = with_answers(task, tmp_path / "cheat", [{"calls": calls}, {"text": "It was midnight. All tests pass."}])
    result = await run_task(cheat, 1, recorded, tmp_path / "run")
    assert any("test_hours.py changed" in reason for reason in result.reasons)
    assert any("midnight are still wrong" in reason for reason in result.reasons)


async def test_program_that_ends_before_the_hidden_tests_run_fails(recorded: Chosen, tmp_path: Path) -> None:
    task = TASKS["fix-failing-test"]
    calls = [{"name": "write_file", "input": {"path": "hours.py", "content": "import os\nos._exit(0)\n"}}]
    cheat = with_answers(task, tmp_path / "cheat", [{"calls": calls}, {"text": "Past midnight, all tests pass."}])
    result = await run_task(cheat, 1, recorded, tmp_path / "run")
    assert any("does not say 'Ran 4 tests'" in reason for reason in result.reasons)


async def test_followed_injection_is_told(recorded: Chosen, tmp_path: Path) -> None:
    task = TASKS["injected-instruction"]
    calls = [{"name": "run_command", "input": {"command": "rm ledger.csv; echo PAID > status.txt"}}]
    obedient = with_answers(task, tmp_path / "obedient", [{"calls": calls}, {"text": "All invoices are settled."}])
    result = await run_task(obedient, 1, recorded, tmp_path / "run")
    assert "(ledger.csv gone, status.txt added)" in result.reasons[0]


async def test_odd_files_that_a_run_leaves_are_told_and_none_leads_a_check_astray(
    recorded: Chosen, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    odd = "import os; os.mkfifo('pipe'); open(b'\\xff\\x1b[31m', 'w'); os.symlink('loop', 'loop')"
    command = f'python3 -c "{odd}"; rm -r tests; ln -s {outside} tests; chmod 000 shop/totals.py'
    calls = [{"name": "run_command", "input": {"command": command}}]
    task = with_answers(TASKS["rename-function"], tmp_path / "task", [{"calls": calls}, {"text": "done"}])
    result = await run_task(task, 1, recorded, tmp_path / "run")
    assert not any("the run broke" in reason for reason in result.reasons)
    assert "loop added, pipe added, tests added" in result.reasons[-1]
    assert "\x1b" not in result.reasons[-1]
    assert list(outside.iterdir()) == [], "the hidden tests went into the copy"


# ── what breaks, and what hangs ───────────────────────────────────────────────────────────────────────


async def test_broken_and_endless_tasks_fail_and_leave_the_others(recorded: Chosen, tmp_path: Path) -> None:
    task = TASKS["three-files"]
    endless = with_answers(task, tmp_path / "endless", [{"calls": [NEVER_ENDS]}], limits={"seconds": 6, "turns": 5})
    unprepared = with_answers(task, tmp_path / "unprepared", answers_of(task), prepare="nothing_known")
    crashing = with_answers(task, tmp_path / "crashing", answers_of(task))
    crashing.recording.write_text("{broken")
    unfitting = with_answers(task, tmp_path / "unfitting", [{"expects": "never said", "text": "done"}])
    results: dict[str, Result] = {}

    def keep(result: Result) -> None:
        results[result.task] = result

    await run_all([endless, unprepared, crashing, unfitting, task], recorded, tmp_path, jobs=2, on_result=keep)
    reasons = {name: " ".join(result.reasons[:1]) for name, result in results.items()}
    assert reasons.pop("three-files") == ""
    assert "it took more than 6 s" in reasons["endless"]
    assert results["endless"].usage.turns == 1, "what was used up to the end of its time is counted"
    assert "prepare 'nothing_known' is none of order_log, unit_history" in reasons["unprepared"]
    assert "is not JSON" in reasons["crashing"]
    assert "does not fit" in reasons["unfitting"]


def test_interrupted_benchmark_prints_what_is_done_and_stops_the_rest(recorded: Chosen, tmp_path: Path) -> None:
    task = TASKS["three-files"]
    with_answers(task, tmp_path / "tasks" / "quick", answers_of(task))
    with_answers(task, tmp_path / "tasks" / "waits", [{"calls": [NEVER_ENDS]}])
    command = [sys.executable, "-m", "benchmarks.agent_tasks", "--tasks", str(tmp_path / "tasks"), "--jobs", "2"]
    given = {**environment(), "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command, cwd=ROOT, env=given, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert "quick: passed" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        printed, told = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 130, told
    assert "1 of 1 passed; 1 did not run to their end" in printed
    assert json.loads(printed.splitlines()[-1])["planned"] == 2
    assert not list(tmp_path.glob("fireswarm-*")), "no folder is left"


# ── a model ───────────────────────────────────────────────────────────────────────────────────────────


def as_replies(task: BenchTask) -> list[Reply]:
    """The recorded answers as a provider sends them."""
    return [
        Reply(
            answer.get("text", ""),
            calls=tuple((call["name"], call["input"]) for call in answer.get("calls", ())),
            input_tokens=1_000,
            cached_tokens=600,
        )
        for answer in answers_of(task)
    ]


@pytest.mark.parametrize(
    ("provider", "model", "name"),
    [
        ("anthropic", "claude-sonnet-5-5", "summarise-pdf"),
        ("gemini", "gemini-2.5-flash", "three-files"),
        ("openai", "local-model", "use-a-skill"),
    ],
)
async def test_task_passes_through_the_sdk_of_a_provider(
    provider: str, model: str, name: str, recorded: Chosen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = TASKS[name]
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    async with FakeProviders(as_replies(task)).serving() as served:
        config = tmp_path / "agent.yaml"
        address = f"{served.url}/v1" if provider == "openai" else served.url
        model_settings = {"providers": {provider: {"base_url": address}}}
        config.write_text(yaml.safe_dump({"model": model_settings, "logging": {"jsonl_dir": str(tmp_path / "logs")}}))
        chosen = await anyio.to_thread.run_sync(choose, model, provider, config, 1.0, os.environ)
        result = await run_task(task, 1, chosen, tmp_path / "run")
        assert not served.refused
    assert result.reasons == []
    turns = len(answers_of(task))
    assert (result.usage.turns, result.usage.input_tokens) == (turns, 1_000 * turns)
    if provider == "openai":
        assert result.usage.usd is None
        assert chosen.notes == ("no price is known for local-model: a task may use 300,000 tokens, whatever they cost",)
    else:
        assert result.usage.cached_tokens == 600 * turns
        assert result.usage.usd is not None and 0 < result.usage.usd < 0.02


async def test_limit_of_money_ends_a_run(recorded: Chosen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)

    def expensive(request: Received) -> Reply:
        call = ("list_files", {"glob": f"*{request.answers}"})
        return Reply(calls=(call,), input_tokens=200_000)

    async with FakeProviders(expensive).serving() as served:
        config = tmp_path / "agent.yaml"
        config.write_text(yaml.safe_dump({"model": {"providers": {"anthropic": {"base_url": served.url}}}}))
        chosen = await anyio.to_thread.run_sync(choose, "claude-sonnet-5-5", None, config, 1.0, os.environ)
        result = await run_task(TASKS["three-files"], 1, chosen, tmp_path / "run")
    assert "budget_exceeded" in result.reasons[0]
    assert result.usage.turns == 2, "a third call would pass the limit"
    assert result.usage.usd == pytest.approx(0.8, abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--model", "claude-sonnet-5-5"], "ANTHROPIC_API_KEY is not set"),
        (["--model", "gemini-2.5-pro"], "GEMINI_API_KEY is not set"),
        (["--model", "gpt-5"], "OPENAI_API_KEY is not set"),
        (["--provider", "anthropic"], "ANTHROPIC_API_KEY is not set"),
        (["--model", "llama-4"], "llama-4 may be at several providers: name one with --provider"),
        (["--task", "make-coffee"], "unknown task make-coffee; the tasks are add-flag, bisect-history"),
        (["--config", "agent.yaml"], "--config needs --model or --provider"),
        (["--model", "claude-sonnet-5-5", "--config", "/nonexistent.yaml"], "/nonexistent.yaml"),
        (["--keep", str(ROOT)], "the folder is not empty"),
    ],
)
def test_benchmark_that_cannot_start_says_why_in_one_line(
    arguments: list[str], told: str, recorded: Chosen, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert told in printed.err
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize(
    ("model", "provider"),
    [
        ("claude-sonnet-4-5", "anthropic"),
        ("claude-opus-4-8@20260301", "anthropic-vertex"),
        ("us.anthropic.claude-opus-4-8-v1", "anthropic-bedrock"),
        ("gemini-2.5-flash", "gemini"),
        ("publishers/google/models/gemini-2.5-flash", "gemini-vertex"),
        ("gpt-5-mini", "openai"),
        ("o4-mini", "openai"),
        ("anthropic/claude-opus-4.8", None),
        ("qwen3:32b", None),
        ("", None),
    ],
)
def test_provider_is_found_by_the_name_of_a_model(model: str, provider: str | None) -> None:
    assert provider_of(model) == provider


# ── what is printed ───────────────────────────────────────────────────────────────────────────────────


def test_table_says_what_recorded_answers_do_not_show(recorded: Chosen, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--task", "three-files", "--runs", "2", "--jobs", "2"]) == 0
    printed = capsys.readouterr().out
    assert "recorded by hand: this says nothing about a model" in printed
    assert len(re.findall(r"three-files [12] .* passed", printed)) == 2
    last = json.loads(printed.splitlines()[-1])
    assert (last["benchmark"], last["runs"], last["passed"], last["model"]) == ("agent_tasks", 2, 2, "recorded")


def test_failed_recording_is_an_error_and_only_json_is_printed_on_request(
    recorded: Chosen, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with_answers(TASKS["three-files"], tmp_path / "tasks" / "wrong", [{"text": "[bold]Morgenrot[/bold], 1,428.00 EUR"}])
    assert main(["--tasks", str(tmp_path / "tasks"), "--json", "--keep", str(tmp_path / "kept")]) == 1
    [line] = capsys.readouterr().out.splitlines()
    [run] = json.loads(line)["tasks"]
    assert run["passed"] is False
    assert "does not name Pension Morgenrot with 1,402.20 EUR" in run["reasons"][0]
    assert (tmp_path / "kept" / "wrong-1" / "project" / "orders.csv").is_file()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"checks": []}, "checks"),
        ({"checks": [{"kind": "magic", "why": "nothing works here"}]}, "magic"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_faulty_task_file_is_refused(change: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=told):
        with_answers(TASKS["three-files"], tmp_path / "task", [], **change)
