"""An advisor writes one operation of a recorded node at a time, with its source and what was recorded of it."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.swarm.task import TaskStatus
from fireswarm.pipelines.files import PROJECT
from fireswarm.pipelines.node.writing import put_function
from fireswarm.settings.packaged import packaged_path
from fireswarm.skills.running.in_child import load_entry
from tests.support.documents import SCAFFOLD, lay_out, run_steps
from tests.support.pipeline import advised, family, files, submit, work
from tests.support.swarm import SwarmRig

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("node") is None, reason="built nodes are run by Node.js, which is not here"),
]

LISTED = json.dumps({"name": "n8n-nodes-made", "version": "1.0.0", "n8n": {"nodes": ["Made.node.js"]}})
NODE = """const crypto = require('crypto');
class Made { description = { displayName: 'Made', name: 'made', version: 1, properties: [
    { name: 'operation', type: 'options', default: 'add', options: [
        { name: 'Add', value: 'add' }, { name: 'Cut', value: 'cut' }, { name: 'Trim', value: 'trim' },
        { name: 'Draw', value: 'draw' }] },
    { displayName: 'Title', name: 'title', type: 'string', required: true, default: '' }] };
async execute() {
    const operation = this.getNodeParameter('operation', 0), title = this.getNodeParameter('title', 0);
    let body = { title };
    if (operation === 'cut') { body = { title: title.slice(1, 4) }; }
    if (operation === 'trim') { body = { title: title.slice(0, -2) }; }
    if (operation === 'draw') { body = { title, id: crypto.randomUUID() }; }
    const made = await this.helpers.httpRequest({ method: 'POST', url: `https://m.example/v1/${operation}`, body });
    return [this.helpers.returnJsonArray(made)];
} }
exports.Made = Made;
"""
HEAD = '"""Advice."""\n\nfrom __future__ import annotations\n\nfrom typing import Any\n\nfrom .transport import Send\n'
BODIES = {
    "cut": 'FROM = 1\n\n\ndef _short(title: str) -> str:\n    return f"{title[FROM:4]}"\n',
    "trim": 'FROM = 0\n\n\ndef _short(title: str) -> str:\n    return f"{title[FROM:-2]}"\n',
}
DRAW = """import uuid


def draw(parameters: dict[str, Any], send: Send) -> Any:
    return send("POST", "/draw", body={"title": parameters["title"], "id": IDENTIFIER})
"""


def function(name: str) -> str:
    called = f'send("POST", "/{name}", body={{"title": _short(parameters["title"])}})'
    return f"\n\ndef {name}(parameters: dict[str, Any], send: Send) -> Any:\n    return {called}\n"


async def test_each_operation_is_a_question_and_the_others_stay_as_they_are(swarm: SwarmRig, tmp_path: Path) -> None:
    """Helpers of two answers have the same names."""
    lay_out({"package.json": LISTED, "Made.node.js": NODE}, tmp_path / "made")
    asked: dict[str, str] = {}

    def answer(request: Any) -> dict[str, Any]:
        text = request.messages[0].text
        name = re.findall(r"function `(\w+)`", text)[0]
        asked[name] = text
        code = HEAD + DRAW.replace("IDENTIFIER", "str(uuid.uuid4())")
        code = code if name == "draw" else HEAD + "\n" + BODIES[name] + function(name)
        return {"files": [{"path": "nodes/made/operations.py", "content": code}], "notes": ""}

    root = await submit(swarm, tmp_path / "made")
    await work(swarm, advised(swarm, answer))
    tasks = await family(swarm, root)
    assert tasks["root"].status is TaskStatus.DONE, {name: task.summary for name, task in tasks.items()}
    left = await files(swarm, tasks["root"])
    states = {each["key"]: each["state"] for each in json.loads(left["port_report.json"])["operations"]}
    assert states == dict.fromkeys(("add", "cut", "trim", "draw"), "proven")
    assert sorted(asked) == ["cut", "draw", "trim"]
    assert "title.slice(1, 4)" in asked["cut"], "its source"
    assert "the code computes title of the body" in asked["cut"], "why no template can write it"
    assert '"case": "plain"' in asked["cut"] and '"/cut"' in asked["cut"] and '"/trim"' not in asked["cut"]
    code = left[f"{PROJECT}nodes/made/operations.py"]
    assert "FROM_trim" in code and code.count("def _short") == 2


def test_helper_of_the_same_name_and_content_is_written_once() -> None:
    stubs = "".join(f'\n\ndef {name}(parameters, send):\n    raise NotImplementedError("{name}")\n' for name in "ab")
    helper = "def _short(title):\n    return title[1:]\n"
    code = f'"""Node."""\n{stubs}'
    for name in "ab":
        body = f"\n\ndef {name}(parameters, send):\n    return _short(parameters)\n"
        code = put_function(code, helper + body, name, ["a", "b"])
    assert code.count("def _short") == 1 and "NotImplementedError" not in code


def test_attribute_that_has_the_name_of_a_helper_keeps_it() -> None:
    code = 'items = 1\n\n\ndef a(p, send):\n    raise NotImplementedError("a")\n'
    answer = "items = 2\n\n\ndef a(p, send):\n    return p.items(), items, f'{items}', {'items': 1}\n"
    made = put_function(code, answer, "a", ["a"])
    assert "return (p.items(), items_a, f'{items_a}', {'items': 1})" in made and "items = 1" in made


@pytest.mark.parametrize(
    ("identifier", "why"),
    [
        ("str(uuid.uuid4())", ""),
        ('"0dd2a8a4-7ea5-4b2f-9d1c-0e4a6d6c5a11"', "it sends the same UUID for several inputs"),
        ('"none"', "instead of"),
        ("parameters['title']", "instead of"),
    ],
)
def test_uuid_that_the_code_draws_is_drawn_by_the_python_node(identifier: str, why: str) -> None:
    judge = load_entry(packaged_path("skills") / "code-validate", Path("scripts/skill.py")).judge
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder).resolve()
        lay_out({"package.json": LISTED, "Made.node.js": NODE}, place / "source")
        steps = (*SCAFFOLD, "test-generate")
        _, left = run_steps(place / "source", place / "work", steps, name="made")
        project = left.tree(PROJECT)
        target = "nodes/made/operations.py"
        written = put_function(project[target], HEAD + DRAW.replace("IDENTIFIER", identifier), "draw", [])
        expected = [each for each in judge.read_expected(project) if each.call["operation"] == "draw"]
        found = judge.replay({**project, target: written}, expected, place / "run", 60.0, "auto")
    assert len(found) >= 3
    assert all(told == "" if not why else why in told for told in found.values()), found
