"""schema-infer outside of a pipeline run: it asks for the sections of the source, by the adapter and on the board."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.llm.response import AgentResponse
from fireswarm.contracts.skills.conversation import TaskState
from fireswarm.contracts.swarm.task import TaskStatus
from fireswarm.errors import InvalidInput
from fireswarm.settings.packaged import packaged_path
from fireswarm.swarm.conversations.adapter import AgentAdapter
from fireswarm.swarm.opening.stand_alone import create_agent_adapter
from tests.integration.test_thinking import one_turn
from tests.support.pipeline import DEMO, advised, family, submit, work
from tests.support.swarm import SwarmRig

pytestmark = pytest.mark.anyio

STEP = "schema-infer"
LINKS = "# Links\n\nBase URL: https://api.example.com\n\n## GET /links\n\n| name | type |\n|---|---|\n| limit | int |\n"
OPENAPI = {
    "openapi": "3.0.0",
    "info": {"title": "Links", "version": "1"},
    "paths": {"/links/{id}": {"get": {"operationId": "show", "responses": {"200": {"description": "one"}}}}},
}


def caller(folder: Path) -> AgentAdapter:
    return create_agent_adapter([packaged_path("skills")], root=folder)


async def infer(folder: Path, sections: Any, source_type: str = "TYPE2", **inputs: Any) -> AgentResponse:
    return await caller(folder).invoke(STEP, {"parsed_sections": sections, "source_type": source_type, **inputs}, "c")


async def test_caller_is_asked_until_all_inputs_are_there(tmp_path: Path) -> None:
    agent = caller(tmp_path)
    first = await agent.invoke(STEP, {}, "c")
    assert first.state is TaskState.INPUT_REQUIRED and first.input_request is not None
    assert [field.name for field in first.input_request.missing_fields] == ["parsed_sections", "source_type"]
    assert first.input_request.json_schema["required"] == ["parsed_sections", "source_type"]
    assert first.input_request.json_schema["properties"]["source_type"] == {"enum": ["TYPE1", "TYPE2"]}
    second = await agent.invoke(STEP, {"source_type": "TYPE2"}, "c", resume=True)
    assert second.input_request is not None
    assert [field.name for field in second.input_request.missing_fields] == ["parsed_sections"]
    last = await agent.invoke(STEP, {"parsed_sections": {"Links": LINKS}}, "c", resume=True, token=second.resume_token)
    assert last.state is TaskState.COMPLETED, last.errors
    [operation] = last.outputs["inferred_schema"]["operations"]
    assert (operation["method"], operation["path"], last.outputs["inferred_schema"]["name"]) == (
        "GET",
        "/links",
        "links",
    )
    [evidence] = last.outputs["trace_map"]["fields"][f"operations.{operation['key']}"]["evidence"]
    assert (evidence["file"], evidence["line_start"]) == ("Links.md", 5)


async def test_document_may_be_an_object(tmp_path: Path) -> None:
    response = await infer(tmp_path, {"api": OPENAPI}, node_name="My links")
    schema = response.outputs["inferred_schema"]
    assert [(item["method"], item["path"]) for item in schema["operations"]] == [("GET", "/links/{id}")]
    assert schema["name"] == "my_links"


async def test_code_is_read_and_not_run(tmp_path: Path) -> None:
    source = (DEMO / "Linkshelf.node.ts").read_text(encoding="utf-8")
    response = await infer(tmp_path, {"Linkshelf.node.ts": source}, "TYPE1")
    assert response.state is TaskState.COMPLETED and response.outputs["inferred_schema"]["source_type"] == "TYPE1"


@pytest.mark.parametrize(
    ("sections", "told"),
    [
        ({"../a.md": "GET /links"}, "not a path inside"),
        ({"a/.git/config.md": "GET /links"}, "not a path inside"),
        ({"C:\\a.md": "GET /links"}, "not a path inside"),
        ({"a.md": 7}, "is not of type"),
        ("GET /links", "is not of type"),
        ({}, "non-empty"),
        ({"api.json": json.dumps({"openapi": "3.0.0", "paths": 7})}, "cannot be read"),
    ],
)
async def test_sections_that_cannot_be_read_say_why(tmp_path: Path, sections: Any, told: str) -> None:
    try:
        response = await infer(tmp_path, sections)
    except InvalidInput as error:
        assert told in str(error)
    else:
        assert response.state is TaskState.FAILED and told in response.message


async def test_source_that_needs_advice_says_who_can_get_it(tmp_path: Path) -> None:
    response = await infer(tmp_path, {"a.md": "nothing that could be read"})
    assert response.state is TaskState.BLOCKED and "submit a task with it" in response.message


async def test_outputs_that_are_too_large_are_named(tmp_path: Path) -> None:
    calls = "".join(f"## GET /links/{number}/of/a/long/path/{'x' * 60}\n\n" for number in range(400))
    response = await infer(tmp_path, {"a.md": calls})
    assert response.state is TaskState.COMPLETED and not response.outputs
    assert "only in the files" in response.message


async def test_operator_answers_on_the_board(swarm: SwarmRig) -> None:
    task = await swarm.submit("a schema", skill=STEP)
    core = advised(swarm, None)
    asked = await one_turn(swarm, core)
    assert asked.status is TaskStatus.BLOCKED and asked.answer_schema["required"] == ["parsed_sections", "source_type"]
    with pytest.raises(InvalidInput, match="TYPE3"):
        await swarm.board.answer(task.task_id, {"source_type": "TYPE3"})
    await swarm.board.answer(task.task_id, {"parsed_sections": {"links.md": LINKS}, "source_type": "TYPE2"})
    done = await one_turn(swarm, core)
    assert done.status is TaskStatus.DONE and done.result is not None, done.error
    names = {item.name for item in done.result.artifacts}
    assert {"inferred_schema.json", "trace_map.json", "source_bundle/links.md", "outputs"} <= names


async def test_files_of_another_run_are_not_taken(swarm: SwarmRig) -> None:
    first = await submit(swarm, DEMO / "Linkshelf.node.ts")
    core = advised(swarm, None)
    await work(swarm, core, 3)
    normalized = (await family(swarm, first))["node-normalize"]
    assert normalized.status is TaskStatus.DONE
    alone = await swarm.submit("a schema", skill=STEP, depends_on=(normalized.task_id,))
    while (task := await swarm.task(alone.task_id)).status is TaskStatus.QUEUED:
        await one_turn(swarm, core)
    assert task.status is TaskStatus.BLOCKED and "parsed_sections" in str([each.name for each in task.questions])
