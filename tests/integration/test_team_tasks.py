"""The benchmark of one agent and a team: recorded answers pass both ways, and what was not done does not pass."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from benchmarks.agent_tasks.checks import Leavings, digests_of, failures_of
from benchmarks.agent_tasks.chosen_model import Chosen, choose
from benchmarks.agent_tasks.evidence import find_fault_of_evidence
from benchmarks.agent_tasks.runner import lay_out, program_path
from benchmarks.agent_tasks.task import Citation
from benchmarks.team_tasks.__main__ import main
from benchmarks.team_tasks.prompt_cache import PromptCache
from benchmarks.team_tasks.runner import WAYS, run_one
from benchmarks.team_tasks.task import load_team_task, load_team_tasks, recorded_answers
from fireswarm.errors import ConfigError, SandboxRefused
from fireswarm.settings.agent import RuntimeSettings

TASKS = {task.name: task for task in load_team_tasks()}
CALLS = {"contradicting-sources": {"agent": 6, "swarm": 7}, "damaged-ledger": {"agent": 7, "swarm": 10}}

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def recorded() -> Chosen:
    """The recorded answers; skips where commands cannot be confined."""
    try:
        return choose(None, None, None, 1.0, {})
    except SandboxRefused as error:
        pytest.skip(str(error))


def test_all_task_files_load_and_name_what_exists() -> None:
    for task in TASKS.values():
        content = recorded_answers(task)
        assert {each["role"] for each in content["conversations"]} > {"Agent", "Architect"}, task.name
        assert task.project.is_dir()
        assert task.file.prepare is None or task.file.prepare in task.materials
        assert "written by hand" in task.recording.read_text(encoding="utf-8")


def test_recorded_answers_pass_both_ways_with_as_many_calls_as_they_are(
    recorded: Chosen, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [part for name in CALLS for part in ("--task", name)]
    assert main([*names, "--delay", "0"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("yes / yes") == 2 and "recorded by hand" in printed
    told = json.loads(printed.splitlines()[-1])
    assert (told["benchmark"], told["runs"], told["passed"]) == ("team_tasks", 4, 4)
    for objective in told["objectives"]:
        calls = {run["way"]: run["turns"] for run in objective["runs"]}
        assert calls == CALLS[objective["objective"]], "no recorded answer is left over"
        assert [run["reasons"] for run in objective["runs"]] == [[], []]
        assert all(0 < run["cached_tokens"] < run["input_tokens"] for run in objective["runs"])
        assert objective["parts"] == "dependent" and objective["uncached_share"] > 0


async def test_untouched_projects_fail(recorded: Chosen, tmp_path: Path) -> None:
    for task in TASKS.values():
        place = await anyio.to_thread.run_sync(lay_out, task, tmp_path / task.name)
        left = Leavings(place.project, digests_of(place.project))
        assert await failures_of(task, left, RuntimeSettings(), program_path()), f"{task.name} passes without work"


async def test_swarm_that_cannot_answer_fails_with_the_reason(recorded: Chosen, tmp_path: Path) -> None:
    folder = tmp_path / "odd"
    folder.mkdir()
    (folder / "task.yaml").write_text((TASKS["contradicting-sources"].folder / "task.yaml").read_text())
    (folder / "project").mkdir()
    (folder / "recording.yaml").write_text(json.dumps({"conversations": [{"role": "Scout", "answers": []}]}))
    task = replace(TASKS["contradicting-sources"], folder=folder)
    result = await run_one(task, 1, recorded, tmp_path / "run", WAYS["swarm"])
    assert "the run ended as blocked" in result.reasons[0] and "no conversation of this role" in result.reasons[0]


def test_follow_up_goes_on_with_the_recording_of_its_first_objective(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    answers = [{"text": "one"}]
    for folder, more in ((first, {}), (second, {"follows": "first", "then": "and more"})):
        folder.mkdir()
        check = {"kind": "answer", "has": ["x"], "why": "it does not say x"}
        fields = {"about": "a", "objective": folder.name, "parts": "dependent", "checks": [check], **more}
        (folder / "task.yaml").write_text(json.dumps(fields))
        conversation = {"role": "Agent", "answers": answers}
        (folder / "recording.yaml").write_text(json.dumps({"conversations": [conversation]}))
    task = load_team_task(second)
    assert (task.file.objective, task.project) == ("first", first / "project")
    assert recorded_answers(task) == {"conversations": [{"role": "Agent", "answers": answers * 2}]}
    (second / "task.yaml").write_text((second / "task.yaml").read_text().replace("and more", ""))
    with pytest.raises(ConfigError, match="says what follows in `then`"):
        load_team_task(second)


# ── evidence, and the count of tokens ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("- The limit is 5\n  (src/a.py:2).", None),
        ("| limit | `src/a.py:1-3` |", None),
        ("- The limit is 5 (src/a.py:1).", "cites a line with"),
        ("- Other. src/a.py:2\n- The limit is 5.", "cites a line with"),
        ("- The limit is 5 (src/a.py:9).", "src/a.py:9 does not exist"),
        ("- The limit is 5 (src/b.py:2).", "src/b.py:2 does not exist"),
    ],
)
def test_evidence_names_a_line_that_says_so(text: str, fault: str | None, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("import os\nLIMIT = 5\n# end\n")
    found = find_fault_of_evidence(text, tmp_path, [Citation(about="limit", line="LIMIT = 5")])
    assert found is None if fault is None else fault in str(found)


def block(text: str, marked: bool = False) -> dict[str, Any]:
    return {"type": "text", "text": text} | ({"cache_control": {"type": "ephemeral"}} if marked else {})


def test_beginning_of_an_answered_request_is_read_from_the_cache_and_the_rest_written() -> None:
    cache = PromptCache()
    system, question = block("s" * 8_000, marked=True), block("q" * 4_000, marked=True)
    body = {"system": [system], "messages": [{"role": "user", "content": [question]}]}
    first = cache.count(body)
    assert first.read == 0 and first.written > 3_000 and first.full == 0
    assert cache.count(body).read == 0, "requests at the same time share nothing"
    cache.keep(first)
    assert cache.count(body).read == first.written
    other = cache.count({**body, "messages": [{"role": "user", "content": [block("other " * 1_000)]}]})
    assert 2_000 < other.read < first.written and other.written == 0 and other.full > 1_000
    picture = {"type": "image", "source": {"type": "base64", "data": "A" * 80_000}}
    shown = {"type": "tool_result", "tool_use_id": "1", "content": [picture]}
    assert PromptCache().count({"messages": [{"role": "user", "content": [shown]}]}).full < 2_000
    short = PromptCache().count({"messages": [{"role": "user", "content": [block("short", marked=True)]}]})
    assert (short.written, short.ends) == (0, ())


# ── the program ───────────────────────────────────────────────────────────────────────────────────────


def test_benchmark_that_cannot_start_says_why_in_one_line(recorded: Chosen, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--task", "make-coffee"]) == 2
    assert "unknown task make-coffee" in capsys.readouterr().err
