"""The report of a port says for each operation what the replay proves, and what it does not, and why."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fireswarm.cli.swarm.pipeline import app_
from fireswarm.contracts.swarm.task import Task
from tests.support.pipeline import advised, family, files, submit, work
from tests.support.swarm import SwarmRig

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("node") is None, reason="built nodes are run by Node.js, which is not here"),
]

NODE = """class Mixed { description = { displayName: 'Mixed <b>', name: 'mixed', version: 2, properties: [
    { name: 'operation', type: 'options', default: 'add', options: [
        { name: 'Add', value: 'add' }, { name: 'Cut', value: 'cut' }, { name: 'Quiet', value: 'quiet' },
        { name: 'Old', value: 'old', displayOptions: { show: { '@version': [1] } } }] },
    { displayName: 'Title', name: 'title', type: 'string', required: true, default: '' }] };
async execute() {
    const operation = this.getNodeParameter('operation', 0), title = this.getNodeParameter('title', 0);
    if (operation === 'quiet') throw new Error('needs <a> file');
    const body = operation === 'add' ? { title } : { title: title.slice(1, 4) };
    const made = await this.helpers.httpRequest({ method: 'POST', url: `https://m.example/v1/${operation}`, body });
    return [this.helpers.returnJsonArray(made)];
} }
exports.Mixed = Mixed;
"""

CODE = """from __future__ import annotations

from typing import Any

from .transport import Send


def add(parameters: dict[str, Any], send: Send) -> Any:
    return send("POST", "/add", body={"title": parameters["title"]})


def cut(parameters: dict[str, Any], send: Send) -> Any:
    return send("POST", "/cut", body={"title": parameters["title"]CUT})


def quiet(parameters: dict[str, Any], send: Send) -> Any:
    return []
"""


def asked(request: Any) -> str:
    """Return the file that an advisor is asked to write."""
    found = re.search(r"Scope: (\S+\.py)", request.messages[0].text)
    assert found is not None
    return found[1]


def write_package(place: Path) -> None:
    """Write the package of the node."""
    place.mkdir()
    listed = {"name": "n8n-nodes-mixed", "version": "1.0.0", "n8n": {"nodes": ["Mixed.node.js"]}}
    (place / "package.json").write_text(json.dumps(listed))
    (place / "Mixed.node.js").write_text(NODE)


async def run_port(swarm: SwarmRig, place: Path, cut: str) -> dict[str, Task]:
    """Port the node with an advisor whose code for one operation ends with *cut*. Returns the tasks of all steps."""
    write_package(place)

    def answer(request: Any) -> dict[str, Any]:
        code = CODE.replace("CUT", cut) if "operations.py" in asked(request) else "def test_it() -> None:\n    pass\n"
        return {"files": [{"path": asked(request), "content": code}], "notes": ""}

    root = await submit(swarm, place)
    await work(swarm, advised(swarm, answer, backbone={"fix_loop_max": 0}))
    return await family(swarm, root)


async def port(swarm: SwarmRig, place: Path, cut: str) -> tuple[dict[str, Any], str]:
    """Port the node as `run_port` does. Returns the report, and its page."""
    left = await files(swarm, (await run_port(swarm, place, cut))["code-validate"])
    return json.loads(left["port_report.json"]), left["port_report.html"]


async def test_report_says_what_is_proven_and_what_is_not_and_why(swarm: SwarmRig, tmp_path: Path) -> None:
    report, page = await port(swarm, tmp_path / "p", "")
    told = {each["key"]: (each["state"], each["why"]) for each in report["operations"]}
    assert told["add"] == ("proven", "")
    assert told["cut"][0] == "differs"
    assert told["quiet"] == ("unproven", "needs <a> file")
    assert told["old"][0] == "unread" and "other versions" in told["old"][1]
    assert (report["proven"], report["present"]) == (1, 4)
    cut = next(each for each in report["operations"] if each["key"] == "cut")
    assert (cut["written_by"], "computes title of the body" in cut["unexplained"]) == ("advisor", True)
    assert [case["passed"] for case in cut["cases"]] == [False] * len(cut["cases"])
    assert "needs &lt;a&gt; file" in page and "<a>" not in page
    assert "Mixed &lt;b&gt;" in page and "1 of 4 operations proven" in page
    assert "http-equiv" not in page and "<script" not in page


async def test_operation_of_an_advisor_is_proven_by_replay_too(swarm: SwarmRig, tmp_path: Path) -> None:
    report, _ = await port(swarm, tmp_path / "p", "[1:4]")
    cut = next(each for each in report["operations"] if each["key"] == "cut")
    assert (cut["state"], cut["written_by"], cut["passed"]) == ("proven", "advisor", cut["inputs"])


@pytest.mark.parametrize("fake", ["__import__('os')._exit(0)", "__import__('pytest').skip('no')"])
async def test_code_that_would_end_its_tests_never_runs(swarm: SwarmRig, tmp_path: Path, fake: str) -> None:
    tasks = await run_port(swarm, tmp_path / "p", f"[{fake}:4]")
    assert "code-validate" not in tasks or tasks["code-validate"].result is None
    told = " ".join(f"{task.summary} {task.error}" for task in tasks.values())
    assert "forbidden-use: __import__ runs text" in told


async def test_command_shows_the_report(swarm: SwarmRig, tmp_path: Path) -> None:
    report, page = await port(swarm, tmp_path / "p", "")
    (tmp_path / "port_report.json").write_text(json.dumps(report))
    (tmp_path / "port_report.html").write_text(page)
    ran = CliRunner().invoke(app_, ["report", str(tmp_path)])
    assert ran.exit_code == 1, ran.output
    assert "1 of 4 operations proven by replay" in ran.output
    rows = dict(line.split("\t", 1) for line in ran.output.splitlines() if "\t" in line)
    assert rows["add"].startswith("proven\t")
    assert rows["quiet"].endswith("needs <a> file")
    assert "port_report.html" in ran.output
