"""``swarm pipeline``: a new pipeline runs at once, faults have their lines, and a run is resumed from a step."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from fireswarm.cli.swarm import pipeline as command
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskStatus
from fireswarm.errors import InvalidInput
from fireswarm.pipelines.loading import load_pipelines
from fireswarm.pipelines.rounds import RESUMES
from fireswarm.settings.packaged import packaged_path
from fireswarm.skills.packs.catalog import load_catalog
from fireswarm.swarm.parts import SwarmParts
from tests.support.fleet import swarm_up, until
from tests.support.pipeline import family, files, work
from tests.support.swarm import SwarmRig
from tests.support.swarm_command import Done, swarm


def pipeline(root: Path, *arguments: str) -> Done:
    return swarm(root, "pipeline", *arguments)


def test_new_pipeline_passes_its_check_and_is_listed_and_shown(tmp_path: Path) -> None:
    made = pipeline(tmp_path, "new", "words")
    assert made.returncode == 0, made.stderr
    assert "wrote pipelines/words.yaml\n" in made.stdout
    assert made.stdout.endswith("\n  swarm pipeline run words --input path=FILE\n")
    assert pipeline(tmp_path, "check", "words").stdout == "1 pipeline, 0 faults\n"
    listed = json.loads(pipeline(tmp_path, "list", "--json").stdout)
    assert {"node", "words"} <= {each["name"] for each in listed["pipelines"]} and listed["left_out"] == []
    shown = pipeline(tmp_path, "show", "words").stdout
    assert "words-report\texecutor\tdeterministic\twords-count\treport.md; if has_words of counts.json is true" in shown
    assert "NAME" not in "".join(path.read_text() for path in tmp_path.rglob("*.md"))


@pytest.mark.parametrize("name", ["Words", "two words", "x" * 41, "../up", "node"])
def test_name_that_a_new_pipeline_cannot_have_is_refused_and_nothing_is_written(tmp_path: Path, name: str) -> None:
    made = pipeline(tmp_path, "new", name)
    assert made.returncode == 1 and "choose " in made.stderr
    assert [*tmp_path.iterdir()] == []


def test_new_pipeline_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "skills" / "words-count").mkdir(parents=True)
    (tmp_path / "skills" / "words-count" / "SKILL.md").write_text("mine")
    made = pipeline(tmp_path, "new", "words")
    assert made.returncode == 1 and "skills/words-count/SKILL.md exists: choose another name" in made.stderr
    assert not (tmp_path / "pipelines").exists()


def test_check_names_every_fault_with_file_line_and_field(tmp_path: Path) -> None:
    pipeline(tmp_path, "new", "words")
    path = tmp_path / "pipelines" / "words.yaml"
    path.write_text(path.read_text().replace("role: executor", "role: pilot\n    gates: [none]"))
    for named in (("words",), (str(path),)):
        found = pipeline(tmp_path, "check", *named)
        assert found.returncode == 1
        assert "words.yaml:11: steps.0.role: step 'words-read': there is no role 'pilot'; known: " in found.stdout
        assert "words.yaml:12: steps.0.gates: step 'words-read': there is no gate none; known: " in found.stdout
    [left_out] = [line for line in pipeline(tmp_path, "list").stdout.splitlines() if line.startswith("left out: ")]
    assert "words.yaml:11" in left_out
    assert "cannot be used" in pipeline(tmp_path, "show", "words").stderr
    assert "`swarm pipeline trace ./pipelines` checks" in pipeline(tmp_path, "check", "./pipelines").stderr
    assert "pipelines/none.yaml does not exist: `swarm pipeline new none`" in (
        pipeline(tmp_path, "check", "pipelines/none.yaml").stdout
    )


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("run", "words"), "the run needs --input path=... (Which text file?)"),
        (("run", "words", "--input", "pth=x"), "--input pth: no step reads it; known: path"),
        (("run", "word"), "unknown pipeline 'word'; known: "),
        (("show", "0a"), "0a is neither a pipeline nor a task; pipelines: "),
        (("resume", "0a", "--from", "words-read"), "0a is neither a pipeline nor a task"),
    ],
)
def test_fault_of_a_call_says_what_to_do_and_submits_nothing(
    tmp_path: Path, arguments: tuple[str, ...], fault: str
) -> None:
    pipeline(tmp_path, "new", "words")
    refused = pipeline(tmp_path, *arguments)
    assert refused.returncode == 1 and fault in refused.stderr
    assert json.loads(swarm(tmp_path, "tasks", "--json").stdout) == []


def test_task_that_is_no_run_is_named(tmp_path: Path) -> None:
    task = json.loads(swarm(tmp_path, "submit", "look", "--json").stdout)["task"]["task_id"]
    assert "is no run of a pipeline: `swarm show " in pipeline(tmp_path, "show", task).stderr


@contextmanager
def live(root: Path) -> Generator[None]:
    """Run all roles as processes."""

    async def served() -> bool:
        return "role processes" in (root / "up.log").read_text()

    with swarm_up(root):
        anyio.run(partial(until, served, seconds=60, what="starting the roles"))
        yield


def test_new_pipeline_runs_at_once_without_a_key_and_is_resumed_from_a_step(tmp_path: Path) -> None:
    assert pipeline(tmp_path, "new", "words").returncode == 0
    (tmp_path / "note.txt").write_text("one two two\n")
    with live(tmp_path):
        ran = pipeline(tmp_path, "run", "words", "--input", "path=note.txt")
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert "most frequent: two (2), one (1)" in ran.stdout
        run = ran.stdout.split()[1]
        (tmp_path / "note.txt").write_text("changed\n")
        resumed = pipeline(tmp_path, "resume", run, "--from", "words-count")
        assert resumed.returncode == 0, resumed.stdout + resumed.stderr
        assert "most frequent: two (2), one (1)" in resumed.stdout, "words-read did not run again"
        shown = json.loads(pipeline(tmp_path, "show", resumed.stdout.split()[1], "--json").stdout)
        assert [(step["step"], step["kept"], step["files"]) for step in shown["steps"]] == [
            ("words-read", True, ["text.txt"]),
            ("words-count", False, ["counts.json"]),
            ("words-report", False, ["report.md"]),
        ]
        assert (shown["status"], shown["resume"], shown["why"]) == ("done", "", [])


def test_csv_contract_runs_end_to_end_and_a_bad_sample_says_how_to_go_on(tmp_path: Path) -> None:
    shutil.copytree(packaged_path("pipelines") / "csv-contract" / "example", tmp_path, dirs_exist_ok=True)
    given = ["--input", "contract=contract.yaml", "--input", "data=drifted.csv"]
    with live(tmp_path):
        ran = pipeline(tmp_path, "run", "csv-contract", *given, "--input", "sample=sample.csv")
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert "drifted.csv: 4 rows, departs from the contract: renamed_column customer (1), " in ran.stdout
        assert swarm(tmp_path, "artifacts", ran.stdout.split()[1], "--to", "out").returncode == 0
        command = [sys.executable, "out/project/validator.py", "sample.csv"]
        checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (checked.returncode, checked.stdout) == (0, "sample.csv: 3 rows, keeps the contract\n")
        failed = pipeline(tmp_path, "run", "csv-contract", *given, "--input", "sample=drifted.csv")
        assert failed.returncode == 1 and "the sample drifted.csv departs from the contract" in failed.stdout
        shown = pipeline(tmp_path, "show", failed.stdout.split()[1])
        assert shown.stdout.endswith("--from csv-validator\n")


# ── resuming, on the real board ─────────────────────────────────────────────────────────────────────────


def with_words(swarm_: SwarmRig, root: Path) -> SwarmParts:
    """Return the core with a new pipeline of its own folder."""
    assert pipeline(root, "new", "words").returncode == 0
    found, catalog = load_pipelines([root / "pipelines"], load_catalog([root / "skills"]))
    return replace(swarm_.core, catalog=catalog, pipelines=found)


async def submit(swarm_: SwarmRig, **context: Any) -> Task:
    return await swarm_.submit("count", role="architect", skill="words-pipeline", context=context)


def states(tasks: Mapping[str, Task]) -> dict[str, tuple[str, int]]:
    return {name: (task.status.value, task.epoch) for name, task in tasks.items() if name != "root"}


@pytest.mark.anyio
async def test_run_that_failed_at_a_step_is_resumed_there_and_again_later(swarm: SwarmRig, tmp_path: Path) -> None:
    core = with_words(swarm, tmp_path)
    (tmp_path / "note.txt").write_text("one two two\n")
    code = tmp_path / "skills" / "words-count" / "scripts" / "skill.py"
    right = code.read_text()
    code.write_text(right.replace("    carried =", '    return SkillResult.failure("cannot count")\n    carried =', 1))
    note = str(tmp_path / "note.txt")
    first = await submit(swarm, path=note)
    await work(swarm, core)
    assert (await swarm.task(first.task_id)).status_reason is StatusReason.ESCALATED
    code.write_text(right)
    before = await family(swarm, first)
    second = await submit(swarm, path=note, **{RESUMES: {"task_id": first.task_id, "step": "words-count"}})
    await work(swarm, core)
    tasks = await family(swarm, second)
    assert states(tasks) == {"words-count": ("done", 1), "words-report": ("done", 1)}, tasks["root"].summary
    assert (await files(swarm, tasks["root"]))["text.txt"] == "one two two\n"
    third = await submit(swarm, path=note, **{RESUMES: {"task_id": second.task_id, "step": "words-report"}})
    await work(swarm, core)
    tasks = await family(swarm, third)
    assert states(tasks) == {"words-report": ("done", 1)}, tasks["root"].summary
    assert {"text.txt", "counts.json", "report.md"} == {*await files(swarm, tasks["root"])}
    assert await family(swarm, first) == before, "the first run stays as it is"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("link", "fault"),
    [
        ("text", "names no run of a pipeline"),
        ({"task_id": "0a", "step": "words-count"}, "which is no run of words-pipeline in this session"),
        ({"task_id": "OTHER", "step": "words-count"}, "which is no run of words-pipeline in this session"),
        ({"task_id": "DONE", "step": "words-cnt"}, "there is no step 'words-cnt' to resume from"),
    ],
)
async def test_link_to_what_is_no_run_gives_no_files(swarm: SwarmRig, tmp_path: Path, link: Any, fault: str) -> None:
    core = with_words(swarm, tmp_path)
    (tmp_path / "note.txt").write_text("one\n")
    ran = await submit(swarm, path=str(tmp_path / "note.txt"))
    await work(swarm, core)
    other = await swarm.submit("look", role="architect", skill="noop")
    ids = {"DONE": ran.task_id, "OTHER": other.task_id}
    if isinstance(link, dict):
        link = {**link, "task_id": ids.get(link["task_id"], link["task_id"])}
    forged = await submit(swarm, path="x", **{RESUMES: link})
    await work(swarm, core)
    ended = await swarm.task(forged.task_id)
    assert ended.status is TaskStatus.BLOCKED and fault in str(ended.error) and not ended.children


def test_demo_says_what_it_leaves_out_without_node(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def find(*, there: bool) -> Any:
        def found() -> str:
            if there:
                return "/usr/bin/node"
            raise InvalidInput("there is no Node.js here")

        return found

    monkeypatch.setattr(command, "find_node", find(there=True))
    places, left_out = command.choose_sources(None)
    assert [place.name for place in places] == ["Linkshelf.node.ts", "n8n-nodes-shelf"] and left_out == ""
    assert all(place.exists() for place in places)
    monkeypatch.setattr(command, "find_node", find(there=False))
    places, left_out = command.choose_sources(None)
    assert [place.name for place in places] == ["Linkshelf.node.ts"]
    assert left_out.startswith("left out: the port of a published node") and "there is no Node.js here" in left_out
    assert command.choose_sources(tmp_path) == ([tmp_path], "")
    with pytest.raises(InvalidInput, match="does not exist"):
        command.choose_sources(tmp_path / "gone")
