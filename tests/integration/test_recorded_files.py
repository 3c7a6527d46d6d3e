"""Nodes that send files: in the Python node, the parameter that names a file is its content."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from fireswarm.pipelines.files import PROJECT
from fireswarm.settings.packaged import packaged_path
from fireswarm.skills.running.in_child import load_entry
from tests.support.documents import SCAFFOLD, lay_out, made_node, run_steps, validated

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None, reason="built nodes are run by Node.js, which is not here"
)

LISTED = json.dumps({"name": "n8n-nodes-up", "version": "1.0.0", "n8n": {"nodes": ["Up.node.js"]}})
NODE = """class Up {{ description = {{ displayName: 'Up', name: 'made', version: 1, properties: [
    {{ name: 'operation', type: 'options', default: 'send', options: [{{ name: 'Send', value: 'send' }}] }},
    {{ name: 'field', type: 'string', required: true, default: 'data' }},
    {{ name: 'title', type: 'string', required: true, default: '' }}] }};
async execute() {{
    const name = this.getNodeParameter('field', 0), title = this.getNodeParameter('title', 0);
    {code}
    const made = await this.helpers.httpRequest({{ method: 'POST', url: 'https://up.example/v1/files', ...sent }});
    return [this.helpers.returnJsonArray(made)];
}} }}
exports.Up = Up;
"""
BUFFER = "const content = await this.helpers.getBinaryDataBuffer(0, name);"
DATA = "const { data } = this.helpers.assertBinaryData(0, name);"
PARTS = "const sent = { formData: { title, up: { value: content, options: { filename: 'a.txt' } } } };"
CONTENT = b"\x00\xff bytes"

WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "as the body": (f"{BUFFER} const sent = {{ body: content }};", {"data": CONTENT}),
    "of the item, decoded": (
        "const content = Buffer.from(this.getInputData()[0].binary[name].data, 'base64');"
        "const sent = { body: content };", {"data": CONTENT},
    ),
    "as a part of a form": (f"{BUFFER} {PARTS}", {"multipart": {"title": "T", "up": CONTENT}}),
    "as base64 in JSON": (
        f"{DATA} const sent = {{ body: {{ title, content: data }} }};",
        {"body": {"title": "T", "content": base64.b64encode(CONTENT).decode()}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_file_of_the_input_is_sent_by_the_python_node(way: str, tmp_path: Path) -> None:
    code, wanted = WAYS[way]
    texts = {"package.json": LISTED, "Up.node.js": NODE.format(code=code)}
    outcome, files = validated(texts, tmp_path)
    assert outcome["passed"], files.text("validation_logs.txt")
    assert json.loads(files.text("port_report.json"))["operations"][0]["state"] == "proven"
    with made_node(texts) as node:
        sent = node.sent_by("send", {"field": CONTENT, "title": "T"})
    assert {name: sent[name] for name in wanted} == wanted


@pytest.mark.parametrize("fact", ["fileName", "mimeType", "fileExtension"])
def test_what_only_the_file_of_a_workflow_has_gets_no_template(fact: str) -> None:
    """Before, the name of the recorder's own file stood as a constant in the Python node."""
    code = f"const {{ {fact} }} = this.helpers.assertBinaryData(0, name); const sent = {{ body: {{ title, {fact} }} }};"
    with made_node({"package.json": LISTED, "Up.node.js": NODE.format(code=code)}) as node:
        (operation,) = node.schema["operations"]
        assert operation["template"] is None
        assert operation["unexplained"] == "it sends name, type or size of a file"


def test_plain_text_is_sent_as_it_is(tmp_path: Path) -> None:
    code = "const sent = { body: `<job>${title}</job>`, headers: { 'content-type': 'text/xml' } };"
    outcome, _ = validated({"package.json": LISTED, "Up.node.js": NODE.format(code=code)}, tmp_path)
    assert outcome["passed"]
    with made_node({"package.json": LISTED, "Up.node.js": NODE.format(code=code)}) as node:
        sent = node.sent_by("send", {"field": "x", "title": "T"})
    assert (sent["data"], sent["headers"]) == ("<job>T</job>", {"content-type": "text/xml"})


GOES_ON = """const sent = { body: { title } }; let first;
    try { first = await this.helpers.httpRequest({ method: 'POST', url: 'https://up.example/v1/first' }); }
    catch { first = {}; }"""


def test_answer_that_is_an_error_is_recorded_and_ends_the_python_node(tmp_path: Path) -> None:
    texts = {"package.json": LISTED, "Up.node.js": NODE.format(code="const sent = { body: { title } };")}
    outcome, files = validated(texts, tmp_path)
    assert outcome["passed"], files.text("validation_logs.txt")
    (operation,) = json.loads(files.text("port_report.json"))["operations"]
    assert [case["case"] for case in operation["cases"] if case["passed"]][-1] == "refused"
    recorded = files.json("project/tests/made_recorded.json")["cases"]
    (refused,) = [case for case in recorded if case.get("refused")]
    assert (refused["refused"], refused["items"], len(refused["requests"])) == (404, None, 1)


def test_code_that_goes_on_after_an_error_gets_no_template() -> None:
    """A template would end there."""
    with made_node({"package.json": LISTED, "Up.node.js": NODE.format(code=GOES_ON)}) as node:
        (operation,) = node.schema["operations"]
        assert operation["unexplained"] == "it goes on after an answer that is an error"


def test_python_node_that_hides_an_error_fails_the_replay(tmp_path: Path) -> None:
    judge = load_entry(packaged_path("skills") / "code-validate", Path("scripts/skill.py")).judge
    lay_out(
        {"package.json": LISTED, "Up.node.js": NODE.format(code="const sent = { body: { title } };")}, tmp_path / "s"
    )
    _, files = run_steps(tmp_path / "s", tmp_path / "w", (*SCAFFOLD, "test-generate"), name="made")
    project = files.tree(PROJECT)
    target = "nodes/made/operations.py"
    before, _, after = project[target].partition("    answer_1 = send(")
    after = after.replace("    return", "    except Exception:\n        answer_1 = {}\n    return")
    hiding = f"{before}    try:\n        answer_1 = send({after}"
    expected = judge.read_expected(project)
    honest = judge.replay(project, expected, tmp_path / "honest", 60.0, "auto")
    assert set(honest.values()) == {""}
    found = judge.replay({**project, target: hiding}, expected, tmp_path / "hiding", 60.0, "auto")
    assert [why for why in found.values() if why] == ["the node goes on after an answer that is an error"], (
        found,
        hiding,
    )


def test_file_that_the_code_makes_is_part_of_its_item(tmp_path: Path) -> None:
    code = """const sent = { body: { title }, encoding: 'arraybuffer' };
    const got = await this.helpers.httpRequest({ method: 'GET', url: 'https://up.example/v1/file' });
    const file = await this.helpers.prepareBinaryData(got.content, 'a.txt');
    return [[{ json: { title }, binary: { [name]: file } }]];"""
    outcome, files = validated({"package.json": LISTED, "Up.node.js": NODE.format(code=code)}, tmp_path)
    assert outcome["passed"], files.text("validation_logs.txt")
    with made_node({"package.json": LISTED, "Up.node.js": NODE.format(code=code)}) as node:

        def send(method: str, path: str, **more: Any) -> Any:
            return {"content": CONTENT}

        found = node.module.run("send", {"field": "x", "title": "T"}, send)
        assert found == [{"title": "T", "$files": [CONTENT]}]
