"""A pipeline of the user's own asks a model or a person for data: the answer keeps to the schema in its file."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.swarm.task import StatusReason, TaskStatus
from fireswarm.errors import InvalidInput
from fireswarm.pipelines.loading import load_pipelines, read_pipeline
from fireswarm.skills.packs.catalog import load_catalog
from fireswarm.swarm.parts import SwarmParts
from tests.support.pipeline import advised, family, files, work
from tests.support.swarm import SwarmRig

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "pipelines.md").read_text(encoding="utf-8")
STEP, SCHEMA, CODE = re.findall(r"```\w+\n(.*?)```", PAGE.partition("## Advice\n")[2], re.DOTALL)[:3]
PIPELINE = f"""\
description: Sorts letters by what they are about.
steps:
  - id: take-letter
    reads: [text]
{STEP}"""
TAKES = """\
from fireswarm import SkillRequest, SkillResult, pipelines


def run(request: SkillRequest) -> SkillResult:
    carried = pipelines.Carried.of(request)
    carried.write("letter.txt", request.context["text"])
    return SkillResult(summary="taken", artifacts=carried.artifacts())
"""


def write(root: Path, schema: str = SCHEMA) -> Path:
    """Write the pipeline of the page; returns its file."""
    for name, mode, code in (("take-letter", "deterministic", TAKES), ("sort-letters", "advisor_only", CODE)):
        (root / "skills" / name / "scripts").mkdir(parents=True)
        head = f"---\nname: {name}\ndescription: Use it for letters.\nmetadata:\n  entry: scripts/skill.py\n"
        (root / "skills" / name / "SKILL.md").write_text(f"{head}  execution_mode: {mode}\n---\n\n# Letters\n")
        (root / "skills" / name / "scripts" / "skill.py").write_text(code)
    (root / "pipelines").mkdir()
    (root / "pipelines" / "letters.schema.json").write_text(schema)
    (root / "pipelines" / "letters.yaml").write_text(PIPELINE)
    return root / "pipelines" / "letters.yaml"


def with_letters(swarm: SwarmRig, root: Path, script: Any | None) -> SwarmParts:
    write(root)
    found, catalog = load_pipelines([root / "pipelines"], load_catalog([root / "skills"]))
    assert found.left_out == ()
    return replace(advised(swarm, script), catalog=catalog, pipelines=found)


@pytest.mark.anyio
async def test_answer_of_the_model_keeps_to_the_schema(swarm: SwarmRig, tmp_path: Path) -> None:
    asked: list[str] = []

    def answer(request: Any) -> dict[str, Any]:
        asked.append(request.messages[-1].text)
        return {"about": "order" if len(asked) > 1 else "weather", "reason": "it names an article"}

    core = with_letters(swarm, tmp_path, answer)
    root = await swarm.submit("sort", role="architect", skill="letters-pipeline", context={"text": "Please send two."})
    await work(swarm, core)
    tasks = await family(swarm, root)
    assert tasks["root"].status is TaskStatus.DONE, {name: task.summary for name, task in tasks.items()}
    assert json.loads((await files(swarm, tasks["root"]))["about.json"])["about"] == "order"
    assert len(asked) == 2 and "Please send two." in asked[0]
    assert "weather" in asked[1] and "complaint" in asked[1], "the model is told what is wrong"


@pytest.mark.anyio
async def test_person_answers_in_the_place_of_the_model(swarm: SwarmRig, tmp_path: Path) -> None:
    core = with_letters(swarm, tmp_path, None)
    root = await swarm.submit("sort", role="architect", skill="letters-pipeline", context={"text": "Please send two."})
    await work(swarm, core)
    waiting = (await family(swarm, root))["sort-letters"]
    assert waiting.status_reason is StatusReason.INPUT_REQUIRED
    assert '"complaint"' in waiting.summary + str(waiting.questions)
    await swarm.board.answer(waiting.task_id, {"advice": {"about": "weather", "reason": ""}})
    await work(swarm, core)
    waiting = (await family(swarm, root))["sort-letters"]
    assert waiting.status_reason is StatusReason.INPUT_REQUIRED and "the given advice cannot be used" in waiting.summary
    await swarm.board.answer(waiting.task_id, {"advice": {"about": "complaint", "reason": "late"}})
    await work(swarm, core)
    tasks = await family(swarm, root)
    assert tasks["root"].status is TaskStatus.DONE, {name: task.summary for name, task in tasks.items()}
    assert json.loads((await files(swarm, tasks["root"]))["about.json"]) == {"about": "complaint", "reason": "late"}


@pytest.mark.anyio
async def test_step_without_a_schema_is_told_how_to_get_one(swarm: SwarmRig, tmp_path: Path) -> None:
    path = write(tmp_path)
    path.write_text(PIPELINE.replace("    advice: letters.schema.json\n", ""))
    found, catalog = load_pipelines([tmp_path / "pipelines"], load_catalog([tmp_path / "skills"]))
    core = replace(advised(swarm, None), catalog=catalog, pipelines=found)
    root = await swarm.submit("sort", role="architect", skill="letters-pipeline", context={"text": "Please send two."})
    await work(swarm, core)
    assert "in the pipeline: `advice: FILE.json`" in (await family(swarm, root))["sort-letters"].summary


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        ("{", "Expecting property name"),
        ("[1]", "an answer is an object"),
        ('{"type": "string"}', "an answer is an object"),
        ('{"type": "object", "properties": 1}', "is not"),
        ('{"type": "object", "properties": {"a": {"pattern": "(?=a)b"}}}', "look-ahead"),
        ("[" * 5_000, "recursion"),
    ],
)
def test_file_that_is_no_schema_is_named_with_its_line(tmp_path: Path, schema: str, fault: str) -> None:
    path = write(tmp_path, schema)
    with pytest.raises(InvalidInput) as refused:
        read_pipeline(path)
    assert f"{path}:6: steps.1.advice: step 'sort-letters': letters.schema.json is no JSON Schema" in str(refused.value)
    assert fault in str(refused.value)


@pytest.mark.parametrize("named", ["../letters.schema.json", "/etc/passwd", "missing.json", "link.json"])
def test_schema_is_read_from_the_folder_of_the_pipeline_only(tmp_path: Path, named: str) -> None:
    path = write(tmp_path)
    (tmp_path / "letters.schema.json").write_text(SCHEMA)
    (tmp_path / "pipelines" / "link.json").symlink_to(tmp_path / "letters.schema.json")
    path.write_text(PIPELINE.replace("letters.schema.json", named))
    with pytest.raises(InvalidInput, match="steps.1.advice"):
        read_pipeline(path)
    path.write_text(PIPELINE.replace("advice: letters.schema.json", 'answer_schema: {"type": "object"}'))
    with pytest.raises(InvalidInput, match="name it as `advice`"):
        read_pipeline(path)
