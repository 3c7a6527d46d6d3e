"""Nodes from recordings: a built node is run with a recorder, and its Python node repeats what it sent."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from benchmarks.pipeline_corpus import record
from fireswarm.contracts.swarm.task import TaskStatus
from fireswarm.pipelines import NoTemplate, infer, lay_out, lost_operations, recorded_node
from fireswarm.settings.packaged import packaged_path
from tests.support.pipeline import advised, family, files, submit, work
from tests.support.swarm import SwarmRig

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("node") is None, reason="built nodes are run by Node.js, which is not here"),
]

PACKAGE = packaged_path("pipelines") / "node" / "demo" / "n8n-nodes-shelf"


async def test_built_node_becomes_a_python_node_that_repeats_its_requests(swarm: SwarmRig) -> None:
    """Templates explain all of this node: no model is asked."""
    root = await submit(swarm, PACKAGE)
    await work(swarm, advised(swarm, None))
    tasks = await family(swarm, root)
    assert tasks["root"].status is TaskStatus.DONE, {name: task.summary for name, task in tasks.items()}
    left = await files(swarm, tasks["root"])
    schema = json.loads(left["node_schema.json"])
    called = {operation["key"]: f"{operation['method']} {operation['path']}" for operation in schema["operations"]}
    assert called == {
        "book.add": "POST /books",
        "book.delete": "DELETE /books/{bookId}",
        "book.get": "GET /books/{bookId}",
        "book.get_all": "GET /books",
        "book.lend": "POST /copies/{$answers.0.copies.0.id}/loans",
    }
    assert (schema["found"], schema["present"], schema["unread"]) == (5, 5, [])
    assert all(operation["template"] for operation in schema["operations"])
    assert "code-convert" not in tasks
    validation = json.loads(left["validation.json"])
    assert validation["passed"] and validation["pytest"].startswith("33 passed")
    trace = json.loads(left["trace_map.json"])["fields"]
    quotes = [piece["quote"] for piece in trace["operations.book.lend"]["evidence"]]
    assert any("/loans" in quote for quote in quotes), quotes


MUTANTS = {
    "another method": ('"DELETE",', '"POST",'),
    "another address": ('"/books/"', '"/book/"'),
    "a name of the query": ('"limit":', '"max":'),
    "a value of the body": ('take(parameters, "title")', 'take(parameters, "kind")'),
    "a nested field": ('"furtherFields"', '"furtherFields.note"'),
    "the credential": ("Bearer {}", "Token {}"),
    "items of another place": ('items(take(answer_1, "books"))', "items(answer_1)"),
    "an answer of another place": ("copies.0.id", "copies.1.id"),
    "fixed items": ("'success': True", "'success': False"),
}


async def test_replay_fails_for_code_that_does_something_else(swarm: SwarmRig, tmp_path: Path) -> None:
    root = await submit(swarm, PACKAGE)
    await work(swarm, advised(swarm, None))
    left = await files(swarm, (await family(swarm, root))["root"])
    project = {path.removeprefix("project/"): text for path, text in left.items() if path.startswith("project/")}
    code = project["nodes/shelf/operations.py"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    for name, (before, after) in MUTANTS.items():
        assert before in code
        place = tmp_path / name
        place.mkdir()
        lay_out(project | {"nodes/shelf/operations.py": code.replace(before, after)}, place)
        ran = await anyio.run_process(command, cwd=place, env=environment, check=False)
        assert ran.returncode == 1 and b" failed" in ran.stdout, (name, ran.stdout)


async def test_operations_that_send_nothing_are_listed(swarm: SwarmRig, tmp_path: Path) -> None:
    package = tmp_path / "n8n-nodes-shelf"
    shutil.copytree(PACKAGE, package)
    node = package / "built" / "nodes" / "Shelf" / "Shelf.node.js"
    node.write_text(
        node.read_text().replace("{ show: { resource: ['book'] } }", "{ show: { resource: ['book', 'copy'] } }")
    )
    root = await submit(swarm, package)
    await work(swarm, advised(swarm, None))
    tasks = await family(swarm, root)
    left = await files(swarm, tasks["schema-infer"])
    schema = json.loads(left["inferred_schema.json"])
    assert (schema["present"], schema["found"]) == (10, 10)
    silent = {each["name"] for each in schema["unread"]}
    assert silent == {f"copy.{name}" for name in ("add", "delete", "get", "get_all", "lend")}


async def test_operation_of_another_version_is_listed(swarm: SwarmRig, tmp_path: Path) -> None:
    package = tmp_path / "n8n-nodes-shelf"
    shutil.copytree(PACKAGE, package)
    node = package / "built" / "nodes" / "Shelf" / "Shelf.node.js"
    old = "{ name: 'Lend', value: 'lend', displayOptions: { show: { '@version': [0] } },"
    node.write_text(node.read_text().replace("{ name: 'Lend', value: 'lend',", old))
    root = await submit(swarm, package)
    await work(swarm, advised(swarm, None))
    tasks = await family(swarm, root)
    schema = json.loads((await files(swarm, tasks["root"]))["inferred_schema.json"])
    assert (schema["present"], schema["found"]) == (5, 4)
    (unread,) = schema["unread"]
    assert (unread["name"], unread["part"]) == ("book.lend", "operation")
    assert unread["reason"] == "a form shows it in other versions of the node than 1 only"


def recorded(place: Path, execute: str, properties: str) -> dict[str, Any]:
    """Record a node of a package of its own, which has one operation. *execute* is the body of its code."""
    file = place / "Small.node.js"
    place.mkdir(exist_ok=True)
    (place / "package.json").write_text('{"name": "n8n-nodes-small", "n8n": {"credentials": []}}')
    described = "{ displayName: 'Small', name: 'small', version: 1,"
    described += " credentials: [{ name: 'smallOAuth2Api' }], properties: ["
    operation = "{ name: 'operation', type: 'options', options: [{ name: 'Run', value: 'run' }], default: 'run' }"
    file.write_text(
        f"class Small {{ description = {described}{operation}, {properties}] }};\n"
        f"async execute() {{ const given = (name) => this.getNodeParameter(name, 0);\n{execute} }} }}\n"
        "exports.Small = Small;\n"
    )
    found = record(place, file)
    assert "error" not in found, found
    return found["nodes"][0]


async def test_clock_and_random_values_are_the_same_in_each_recording_and_differ_between_inputs(tmp_path: Path) -> None:
    code = """const crypto = require('crypto');
    const body = { at: new Date().toISOString(), now: Date.now(), called: Date(),
        r: Math.random(), id: crypto.randomUUID(), bytes: crypto.randomBytes(4).toString('hex'),
        web: crypto.webcrypto.getRandomValues(new Uint8Array(2)).join() };
    await this.helpers.httpRequest({ method: 'POST', url: 'https://a.example/x', body });
    return [[]];"""
    properties = "{ name: 'title', type: 'string', default: '' }, { name: 'day', type: 'dateTime', default: '' }"
    first, second = (recorded(tmp_path / name, code, properties) for name in ("one", "two"))
    assert first["operations"] == second["operations"]
    bodies = [case["requests"][0]["body"] for case in first["operations"][0]["cases"]]
    assert len(bodies) >= 4
    for name in bodies[0]:
        assert len({body[name] for body in bodies}) == len(bodies), name


async def test_clock_of_the_recording_leaves_given_dates_as_they_are(tmp_path: Path) -> None:
    code = """const day = new Date('2020-02-03T04:05:06Z');
    const body = { day: day.toISOString(), utc: Date.UTC(2020, 1, 3), is: day instanceof Date,
        same: day.constructor === Date };
    await this.helpers.httpRequest({ method: 'POST', url: 'https://a.example/x', body });
    return [[]];"""
    node = recorded(tmp_path / "p", code, "")
    body = node["operations"][0]["cases"][0]["requests"][0]["body"]
    assert body == {"day": "2020-02-03T04:05:06.000Z", "utc": 1580688000000, "is": True, "same": True}


async def test_fields_that_only_the_provider_knows_are_made_up(tmp_path: Path) -> None:
    code = """const { oauthTokenData } = await this.getCredentials('smallOAuth2Api');
    const qs = { key: oauthTokenData.organizer_key };
    await this.helpers.httpRequest({ url: `${oauthTokenData.api_domain}/x`, qs });
    return [[]];"""
    node = recorded(tmp_path / "p", code, "")
    request = node["operations"][0]["cases"][0]["requests"][0]
    assert (request["url"], request["query"]) == ("https://apiurl.credential.example/x", {"key": "c_organizer_key"})
    assert node["secrets"]["c_organizer_key"] == "organizer_key"


@pytest.mark.parametrize(
    ("next_page", "cursor"),
    [
        ("page.next", "next"),
        ("page.meta?.paging?.next", "meta.paging.next"),
        ("page['@odata.nextLink']", "@odata.nextLink"),
    ],
)
async def test_pages_are_recorded_and_followed_by_the_template(tmp_path: Path, next_page: str, cursor: str) -> None:
    code = f"""const found = [];
    let cursor;
    do {{
        const qs = {{ q: given('title'), cursor }};
        const page = await this.helpers.httpRequest({{ url: 'https://a.example/v1/books', qs }});
        found.push(...page.books);
        cursor = {next_page};
    }} while (cursor && given('returnAll'));
    return [this.helpers.returnJsonArray(found)];"""
    properties = "{ name: 'title', type: 'string', default: '' }, { name: 'returnAll', type: 'boolean' }"
    node = recorded_node(recorded(tmp_path / "p", code, properties))
    template = infer(node.operations[0].cases, "https://a.example/v1")
    pages = template.requests[0].pages
    assert pages is not None
    assert pages.when is not None
    assert (pages.cursor, pages.when.parameter, pages.when.value) == (cursor, "returnAll", True)


async def test_node_that_only_waits_for_events_says_so(tmp_path: Path) -> None:
    place = tmp_path / "p"
    recorded(place, "return [[]];", "")
    file = place / "Small.node.js"
    file.write_text(file.read_text().replace("async execute()", "async webhook()"))
    cases = record(place, file)["nodes"][0]["operations"][0]["cases"]
    assert "waits for events" in cases[0]["error"]


async def test_recorded_inputs_pass_the_check_of_the_python_node(swarm: SwarmRig, tmp_path: Path) -> None:
    """Parameters that a form shows for one value only, lists of collections, and notes that are no parameters."""
    shown = "displayOptions: { show: { by: ['id'] } }"
    properties = f"""{{ name: 'hint', type: 'notice', default: '' }},
        {{ name: 'by', type: 'options', options: [{{ value: 'id' }}, {{ value: 'name' }}], default: 'id' }},
        {{ name: 'itemId', type: 'string', required: true, default: '', {shown} }},
        {{ name: 'size', type: 'hidden', default: 'large' }},
        {{ name: 'labels', type: 'collection', typeOptions: {{ multipleValues: true }}, default: {{}},
           options: [{{ name: 'label', type: 'string', default: '' }}] }}"""
    code = """const body = { size: given('size'), labels: given('labels') };
    if (given('by') === 'id') body.id = given('itemId');
    const made = await this.helpers.httpRequest({ method: 'POST', url: 'https://a.example/v1/x', body });
    return [this.helpers.returnJsonArray(made)];"""
    place = tmp_path / "n8n-nodes-small"
    cases = recorded(place, code, properties)["operations"][0]["cases"]
    assert not any("hint" in case["parameters"] for case in cases)
    (place / "package.json").write_text('{"name": "n8n-nodes-small", "n8n": {"nodes": ["Small.node.js"]}}')
    root = await submit(swarm, place)
    await work(swarm, advised(swarm, None))
    tasks = await family(swarm, root)
    assert tasks["root"].status is TaskStatus.DONE, {name: task.summary for name, task in tasks.items()}
    left = await files(swarm, tasks["root"])
    assert json.loads(left["port_report.json"])["operations"][0]["state"] == "proven"
    inputs = json.loads(left["node_schema.json"])["inputs"]["run"]
    assert inputs["required"] == []
    assert sorted(inputs["properties"]) == ["by", "itemId", "labels", "size"]


async def test_part_of_a_value_is_taken_for_a_constant_nowhere(tmp_path: Path) -> None:
    code = """const [title, day] = [given('title'), given('day')];
    const body = { start: title.slice(0, 3), month: day.slice(0, 7), many: given('count') + 1 };
    await this.helpers.httpRequest({ method: 'POST', url: 'https://a.example/v1/x', body });
    return [[]];"""
    properties = """{ name: 'title', type: 'string', required: true },
        { name: 'day', type: 'dateTime', required: true }, { name: 'count', type: 'number', required: true }"""
    node = recorded_node(recorded(tmp_path / "p", code, properties))
    bodies: list[Any] = [case.requests[0].body for case in node.operations[0].cases]
    for name in ("start", "month", "many"):
        assert len({body[name] for body in bodies}) > 1, name
    with pytest.raises(NoTemplate):
        infer(node.operations[0].cases, "https://a.example/v1")


def test_loss_is_counted_apart_from_the_recorder() -> None:
    options = [{"value": "add"}, {"value": "get"}]
    entry = {"name": "operation", "options": options, "displayOptions": {"show": {"resource": ["book"]}}}
    content = {"file": "x.node.js", "class": "X", "description": {"properties": [entry]}}
    read = [{"resource": "book", "operation": "add", "cases": []}]
    assert lost_operations(recorded_node({**content, "operations": read})) == ["book.get"]
    hidden = [{"resource": "book", "operation": "get"}]
    assert lost_operations(recorded_node({**content, "operations": read, "hidden": hidden})) == []


@pytest.mark.parametrize("name", ["{outside}", "../../outside.txt", "built/link.js"])
async def test_node_that_forges_its_recording_brings_no_file_of_others_into_the_bundle(
    swarm: SwarmRig, tmp_path: Path, name: str
) -> None:
    """The node's code runs beside the recorder, and may write what it likes as the recording."""
    package, outside = tmp_path / "p" / "n8n-nodes-shelf", tmp_path / "outside.txt"
    shutil.copytree(PACKAGE, package)
    outside.write_text("sesame-4711")
    (package / "built" / "link.js").symlink_to(outside)
    node = package / "built" / "nodes" / "Shelf" / "Shelf.node.js"
    forged = {"nodes": [{"file": "x", "class": "X", "description": {}, "loaded": [name.format(outside=outside)]}]}
    write = f"process.binding('fs').writeFileUtf8(process.argv[4], {json.dumps(json.dumps(forged))}, 577, 0o644);"
    node.write_text(f"{write}\nprocess.reallyExit(0);\n{node.read_text()}")
    root = await submit(swarm, package)
    await work(swarm, advised(swarm, None))
    tasks = await family(swarm, root)
    assert "is no file of the package" in f"{tasks['source-ingest'].summary} {tasks['source-ingest'].error}"
    assert tasks["source-ingest"].result is None


async def test_node_leaves_no_link_through_which_its_sources_are_written(swarm: SwarmRig, tmp_path: Path) -> None:
    """What the recorder's process can write to is no folder in which this process writes afterwards."""
    package, outside = tmp_path / "p" / "n8n-nodes-shelf", tmp_path / "outside"
    shutil.copytree(PACKAGE, package)
    outside.mkdir()
    node = package / "built" / "nodes" / "Shelf" / "Shelf.node.js"
    plant = """
    const own = require.constructor('return process')();
    const [fs, path] = ['fs', 'path'].map((name) => own.getBuiltinModule(name));
    for (const above of [path.dirname(own.argv[own.argv.length - 1]), '.', '..'])
      for (const name of ['source_bundle', 'recording.json'])
        try { fs.symlinkSync(OUTSIDE + (name.includes('.') ? '/made' : ''), path.join(above, name)); } catch {}
    """.replace("OUTSIDE", json.dumps(str(outside)))
    node.write_text(f"{plant}\n{node.read_text()}")
    await submit(swarm, package)
    await work(swarm, advised(swarm, None))
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("`/books/${id}`", "`/books/${require('slug')(id)}`", "needs the package slug, which is not installed"),
        ("{ title: this", "{ code: require('slug').make('x'), title: this", "needs the package slug"),
        ("`/books/${id}`", "`/books/${id.number}`", "has a value that was not there"),
    ],
)
async def test_what_a_missing_package_would_have_made_gets_no_template(
    swarm: SwarmRig, tmp_path: Path, before: str, after: str, why: str
) -> None:
    package = tmp_path / "n8n-nodes-shelf"
    shutil.copytree(PACKAGE, package)
    node = package / "built" / "nodes" / "Shelf" / "Shelf.node.js"
    text = node.read_text()
    assert before in text
    node.write_text(text.replace(before, after))
    root = await submit(swarm, package)
    await work(swarm, advised(swarm, None))
    left = await files(swarm, (await family(swarm, root))["schema-infer"])
    schema = json.loads(left["inferred_schema.json"])
    assert why in str([operation["unexplained"] for operation in schema["operations"]])
    assert "stand-in" not in str([operation["path"] for operation in schema["operations"]])
    assert "undefined" not in str([operation["path"] for operation in schema["operations"]])


async def test_package_with_several_nodes_asks_which(swarm: SwarmRig, tmp_path: Path) -> None:
    package = tmp_path / "n8n-nodes-shelf"
    shutil.copytree(PACKAGE, package)
    listed = json.loads((package / "package.json").read_text())
    listed["n8n"]["nodes"].append("built/nodes/Other/Other.node.js")
    (package / "package.json").write_text(json.dumps(listed))
    root = await submit(swarm, package)
    await work(swarm, advised(swarm, None))
    asked = (await family(swarm, root))["node-normalize"]
    assert [question.name for question in asked.questions] == ["node"]
    await swarm.board.answer(asked.task_id, {"node": "built/nodes/Shelf/Shelf.node.js"})
    await work(swarm, advised(swarm, None))
    assert (await family(swarm, root))["root"].status is TaskStatus.DONE
