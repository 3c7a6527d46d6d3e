"""Documents of strangers: each attack gets one clear error or is listed, and the rest is read."""

from __future__ import annotations

import ast
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.skills.advice import ExecutionMode
from fireswarm.contracts.skills.skill import SkillRequest, SkillState
from fireswarm.errors import GateFailed, InvalidInput
from fireswarm.pipelines import NodeSchema, check_step, load_document
from fireswarm.pipelines.documents import loading
from fireswarm.pipelines.files import Carried, lay_out
from tests.support.documents import ALL, INFER, run_step, run_steps, step_named

GOOD = "  /good: {get: {operationId: good, tags: [a]}}\n"
HEAD = 'openapi: 3.0.3\ninfo: {title: T, version: "1"}\nservers: [{url: https://t.example/v1}]\npaths:\n' + GOOD


def read(texts: dict[str, str], work: Path) -> tuple[str, dict[str, Any]]:
    """The last step's summary, and the schema if there is one."""
    lay_out(texts, work / "source")
    result, files = run_steps(work / "source", work / "work", INFER)
    is_read = result.state is SkillState.COMPLETED
    return result.summary, files.json("inferred_schema.json") if is_read else {}


def body(schema: str) -> str:
    content = f"{{application/json: {{schema: {schema}}}}}"
    return f"{{post: {{operationId: bad, tags: [a], requestBody: {{content: {content}}}}}}}"


LAUGHS = "x:\n  - &a0 {k: [v, v, v, v, v, v, v, v, v]}\n" + "".join(
    f"  - &a{n} {{k: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 12)
)


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("file:///etc/passwd", "nothing in the source folder"),
        ("file:///etc/passwd#/a", "nothing in the source folder"),
        ("http://127.0.0.1:1/a.yaml", "nothing in the source folder"),
        ("../../../../etc/passwd", "nothing in the source folder"),
        ("/etc/passwd", "nothing in the source folder"),
        ("link.yaml#/a", "nothing in the source folder"),
        ("deep.json", "more than 200 levels"),
        ("#/paths/~1bad/post/nothing", "leads to nothing"),
        ("#/servers/x", "no reference"),
        ("http://[", "no reference"),
    ],
)
def test_reference_that_leads_elsewhere_is_listed(reference: str, why: str, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (tmp_path / "outside.yaml").write_text("a: {type: object, properties: {secret: {}}}\n")
    (source / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    texts = {"api.yaml": f"{HEAD}  /bad: {{$ref: {reference!r}}}\n", "deep.json": "[" * 5_000}
    told, schema = read(texts, tmp_path)
    assert [each["path"] for each in schema["operations"]] == ["/good"], told
    assert why in schema["unread"][0]["reason"]
    assert schema["unread"][0]["position"] == "api.yaml:6"
    assert "secret" not in json.dumps(schema)


@pytest.mark.parametrize(
    "schema",
    [
        "{$ref: '#/components/schemas/Self'}",
        "{$ref: '#/components/schemas/A'}",
        "{allOf: [{$ref: '#/components/schemas/All'}]}",
        "{oneOf: [{$ref: '#/components/schemas/One'}, {$ref: '#/components/schemas/One'}]}",
    ],
)
def test_schema_in_a_circle_ends(schema: str, tmp_path: Path) -> None:
    components = (
        "components: {schemas: {Self: {$ref: '#/components/schemas/Self'}, A: {$ref: '#/components/schemas/B'}, "
        "B: {$ref: '#/components/schemas/A'}, All: {allOf: [{$ref: '#/components/schemas/All'}], properties: {a: {}}}, "
        "One: {oneOf: [{$ref: '#/components/schemas/One'}, {$ref: '#/components/schemas/One'}]}}}\n"
    )
    told, read_schema = read({"api.yaml": f"{HEAD}  /bad: {body(schema)}\n{components}"}, tmp_path)
    assert [each["path"] for each in read_schema["operations"]] == ["/good", "/bad"], told


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (HEAD + LAUGHS, "more than 5,000,000 values"),
        (HEAD + "x: &a [*a]\n", r"\*a stands for nothing"),
        (HEAD + "x: " + "[" * 100_000, "more than 200 levels"),
        (HEAD + "x: " + "{a: " * 100_000, "more than 200 levels"),
        (HEAD + "x: !!python/object/apply:os.system [exit]\n---\nx: 1\n", "a second document begins"),
        (HEAD + "x: 'no end\n", "not valid YAML or JSON"),
        (HEAD + "? [a]\n: 1\n", "a key is no text"),
    ],
)
def test_document_beyond_a_limit_gets_one_error(text: str, why: str, tmp_path: Path) -> None:
    told, schema = read({"api.yaml": text}, tmp_path)
    assert not schema
    with pytest.raises(InvalidInput, match=why):
        load_document(text)
    assert "cannot be read" in told


@pytest.mark.parametrize(
    ("path", "listed"),
    [
        ("/bad: 3", "/bad"),
        ("/bad: {get: [1]}", "GET /bad"),
        ("bad: {get: {operationId: x}}", "GET bad"),
        ("/bad: {get: {parameters: [{name: a}]}}", "GET /bad  a"),
        ('/bad: {get: {parameters: [{in: header, name: "a\\r\\nEvil: x"}]}}', "GET /bad header a\r\nEvil: x"),
        ("/bad: {get: {parameters: [{in: path, name: id}]}}", "GET /bad path id"),
        (f"/bad: {{get: {{parameters: [{{in: query, name: {'n' * 201}}}]}}}}", f"GET /bad query {'n' * 201}"),
        ('/bad: {post: {requestBody: {content: {"a/b\\r\\nEvil: x": {}}}}}', "POST /bad body"),
        ("/bad: {get: {parameters: {}}}", "paths//bad/get/parameters"),
        ("/good: {get: {operationId: again}}", "api.yaml /good"),
    ],
)
def test_part_that_is_malformed_is_listed(path: str, listed: str, tmp_path: Path) -> None:
    told, schema = read({"api.yaml": f"{HEAD}  {path}\n"}, tmp_path)
    assert listed in {each["name"] for each in schema["unread"]}, (told, schema.get("unread"))


def test_text_of_a_document_becomes_no_code(tmp_path: Path) -> None:
    """Names, ids, addresses and descriptions with quotes and line ends stay texts, and the tests of the node pass."""
    evil = "a\"\"\"\\\n'''\nimport os #"
    operation = {
        "operationId": evil, "tags": [evil], "summary": evil, "responses": {},
        "parameters": [{"name": evil, "in": "query", "schema": {"type": "string", "enum": [evil]}}],
    }  # fmt: skip
    text = json.dumps(
        {
            "openapi": "3.0.3",
            "info": {"title": evil, "version": "1", "description": evil},
            "servers": [{"url": f"https://t.example/{evil}"}],
            "paths": {f"/{evil}/{{{evil}}}": {"get": operation}},
        }
    )
    lay_out({"api.json": text}, tmp_path / "source")
    result, files = run_steps(tmp_path / "source", tmp_path / "work", ALL, name="made")
    assert result.state is SkillState.COMPLETED, result.summary
    assert files.json("validation.json")["passed"], files.text("validation_logs.txt")
    tree = ast.parse(files.text("project/nodes/made/operations.py"))
    assert not [each for each in ast.walk(tree) if isinstance(each, ast.Import)]
    assert "server" in {each["name"] for each in files.json("inferred_schema.json")["unread"]}


def test_values_are_those_of_json() -> None:
    document = load_document(
        "a: [yes, 2020-01-01, 0x1f, 1_000, .inf, 1e999, !!float x, ~, 007, 1.50]\n200: {on: off}\n"
    )
    assert document.value == {
        "a": ["yes", "2020-01-01", "0x1f", "1_000", ".inf", "1e999", "x", None, 7, 1.5], "200": {"on": "off"},
    }  # fmt: skip
    assert load_document('{"a": NaN}').value == {"a": "NaN"}
    assert load_document('{"a": "\\ud800"}').value == {"a": "?"}
    assert load_document("a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}\n").value["d"] == {"c": 3, "b": 1}


def test_positions_and_keys_that_stand_twice() -> None:
    for text in ('{\n "a": 1,\n "b": [\n  {"c": 2}],\n "a": 3}\n', "# x\na: 1\nb:\n  - c: 2\na: 3\n"):
        document = load_document(text)
        assert document.value == {"a": 3, "b": [{"c": 2}]}
        assert document.spot(document.value, "b") == loading.Spot(3, 1 if text.startswith("{") else 0)
        assert [(key, spot.line) for key, spot in document.twice] == [("a", 5)]


def without(schema: NodeSchema, lost: str) -> NodeSchema:
    """Return a schema as a reader would make it that forgets a part."""
    operations = [each for each in schema.operations if lost != "operation" or each.path == "/good"]
    keys = {each.key for each in operations}
    parameters = [each for each in schema.parameters if each.place != lost and keys.issuperset(each.operations)]
    return schema.model_copy(update={"operations": tuple(operations), "parameters": tuple(parameters)})


@pytest.mark.parametrize(
    ("lost", "named"),
    [("operation", "POST /more"), ("query", "POST /more query q"), ("body", "POST /more body f")],
)
def test_silent_loss_fails_the_step_and_its_gate(
    lost: str, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parameter = "parameters: [{name: q, in: query, schema: {type: string}}]"
    operation = body("{type: object, properties: {f: {type: string}}}").replace("tags:", f"{parameter}, tags:")
    lay_out({"api.yaml": f"{HEAD}  /more: {operation}\n"}, tmp_path / "source")
    ingested, _ = run_steps(tmp_path / "source", tmp_path / "work", INFER[:3])
    good = run_step("schema-infer", tmp_path / "good", ingested.artifacts)
    whole = NodeSchema.model_validate
    monkeypatch.setattr(NodeSchema, "model_validate", lambda content: without(whole(content), lost))  # pyright: ignore[reportUnknownLambdaType]
    failed = run_step("schema-infer", tmp_path / "failed", ingested.artifacts)
    assert (failed.state, named in failed.summary) == (SkillState.FAILED, True)
    monkeypatch.undo()
    files = Carried(tmp_path / "edit", {each.name: each for each in good.artifacts})
    schema = without(NodeSchema.model_validate(files.json("inferred_schema.json")), lost)
    fields = {name: files.json("trace_map.json")["fields"][name] for name in schema.fields()}
    files.write_json("inferred_schema.json", schema.model_dump(mode="json"))
    files.write_json("trace_map.json", {"fields": fields})
    request = SkillRequest(
        task_id="t", session_hash="s", objective="o", role="scout", workdir=tmp_path / "edit",
        now=datetime(2026, 1, 1, tzinfo=UTC), artifacts=ingested.artifacts,
    )  # fmt: skip
    forged = good.model_copy(update={"artifacts": files.artifacts()})
    with pytest.raises(GateFailed, match=f"neither has nor lists {named}"):
        check_step(step_named("schema-infer"), ExecutionMode.HYBRID, request, forged)


def test_folder_with_several_documents_asks_which(tmp_path: Path) -> None:
    lay_out({"a.yaml": HEAD, "b.json": '{"openapi":"3.1.0","paths":{"/b":{"get":{}}}}'}, tmp_path / "source")
    result, _ = run_steps(tmp_path / "source", tmp_path / "work", INFER)
    assert result.questions[0].allowed == {"enum": ["a.yaml", "b.json"]}
    result, files = run_steps(tmp_path / "source", tmp_path / "again", INFER, document="b.json")
    assert [each["path"] for each in files.json("inferred_schema.json")["operations"]] == ["/b"]


def test_large_document_is_read_whole(tmp_path: Path) -> None:
    about = "x" * 5_000
    paths = {f"/p{n}": {"get": {"operationId": f"op{n}", "description": about}} for n in range(300)}
    told, schema = read({"api.json": json.dumps({"openapi": "3.1.0", "paths": paths})}, tmp_path)
    assert (schema["found"], schema["present"]) == (300, 300), told
