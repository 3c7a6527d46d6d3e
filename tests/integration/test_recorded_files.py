"""Nodes that send files: in the Python node, the parameter that names a file is its content."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.documents import made_node, validated

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
