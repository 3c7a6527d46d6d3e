"""A node with more operations than most: nothing of it is refused or left out for its size."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from fireswarm.contracts.swarm.task import TaskStatus
from tests.support.pipeline import advised, family, files, submit, work
from tests.support.swarm import SwarmRig

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("node") is None, reason="built nodes are run by Node.js, which is not here"),
]

OPERATIONS = 260


def write_package(place: Path, operations: int) -> None:
    """Write a package with one node, each operation of which sends one request."""
    file = place / "built" / "Wide.node.js"
    file.parent.mkdir(parents=True)
    listed = {"name": "n8n-nodes-wide", "version": "1.0.0", "n8n": {"nodes": ["built/Wide.node.js"], "credentials": []}}
    (place / "package.json").write_text(json.dumps(listed))
    options = ", ".join(f"{{ name: 'Do {n}', value: 'do{n}' }}" for n in range(operations))
    file.write_text(
        "class Wide { description = { displayName: 'Wide', name: 'wide', version: 1, description: 'Wide',"
        f" properties: [{{ name: 'operation', type: 'options', options: [{options}], default: 'do0' }},\n"
        "{ displayName: 'Id', name: 'id', type: 'string', required: true, default: '' },\n"
        "{ displayName: 'Text', name: 'text', type: 'string', default: '' }] };\n"
        "async execute() {\n"
        "const sent = await this.helpers.httpRequest({ method: 'POST', "
        "url: `https://wide.example/v1/${this.getNodeParameter('operation', 0)}/${this.getNodeParameter('id', 0)}`,"
        " body: { text: this.getNodeParameter('text', 0) } });\n"
        "return [this.helpers.returnJsonArray(sent)]; } }\nexports.Wide = Wide;\n"
    )


async def test_node_of_260_operations_is_ported_as_a_whole(swarm: SwarmRig, tmp_path: Path) -> None:
    write_package(tmp_path / "n8n-nodes-wide", OPERATIONS)
    root = await submit(swarm, tmp_path / "n8n-nodes-wide")
    await work(swarm, advised(swarm, None))
    tasks = await family(swarm, root)
    assert tasks["root"].status is TaskStatus.DONE, {name: task.summary for name, task in tasks.items()}
    left = await files(swarm, tasks["root"])
    schema = json.loads(left["node_schema.json"])
    assert (schema["found"], schema["present"], len(schema["operations"])) == (OPERATIONS, OPERATIONS, OPERATIONS)
    assert all(operation["template"] for operation in schema["operations"])
    recording = json.loads(left["recording.json"])
    assert not any(operation.get("left_out") for operation in recording["operations"])
    assert json.loads(left["validation.json"])["passed"]
