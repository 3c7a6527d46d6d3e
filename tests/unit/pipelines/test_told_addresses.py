"""An address that an API's answer names is followed on the servers of the source only, whatever it looks like."""

from __future__ import annotations

import contextlib
import importlib
import json
import shutil
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from fireswarm.contracts.skills.skill import SkillState
from tests.support.documents import ALL, INFER, MadeNode, made_node, run_steps
from tests.unit.pipelines.test_transport import Server, serving

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="built nodes are run by Node.js")

KEY = "the-key-of-the-user"

NODE = """
class Things {
  constructor() {
    this.description = {
      displayName: 'Things', name: 'things', version: 1, group: ['input'], description: 'things',
      defaults: {name: 'Things'}, inputs: ['main'], outputs: ['main'],
      credentials: [{ name: 'thingsApi', required: true }],
      properties: [{ displayName: 'Operation', name: 'operation', type: 'options', default: 'list',
        options: [{ name: 'List', value: 'list', description: 'List things' },
                  { name: 'Open', value: 'open', description: 'Open a thing' }] }],
    };
  }
  async execute() {
    const creds = await this.getCredentials('thingsApi');
    const headers = { Authorization: `Bearer ${creds.token}` };
    const ask = (url) => this.helpers.httpRequest({ method: 'GET', url, headers, json: true });
    if (this.getNodeParameter('operation', 0) === 'open') {
      const answer = await ask('https://api.things.example/v1/thing');
      return [[{ json: await ask(answer.location) }]];
    }
    const found = [];
    let url = 'https://api.things.example/v1/things';
    while (url) {
      const answer = await ask(url);
      found.push(...answer.items);
      url = answer.next_url;
    }
    return [found.map((json) => ({ json }))];
  }
}
module.exports = { Things };
"""


@pytest.fixture(scope="module")
def made() -> Iterator[MadeNode]:
    with made_node({"Things.node.js": NODE}, "Things.node.js") as node:
        yield node


@pytest.fixture
def api(made: MadeNode, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with serving() as server:
        monkeypatch.setenv("THINGS_BASE_URL", server.address)
        monkeypatch.setenv("THINGS_TOKEN", KEY)
        yield server


def answer(**content: Any) -> tuple[int, dict[str, str], bytes]:
    return 200, {"Content-Type": "application/json"}, json.dumps(content).encode()


ELSEWHERE = (
    "{other}/steal",
    "http://{api}@{host}/steal",
    "@{host}/steal",
    ":x@{host}/steal",
    "http://{host}\\@{api}/steal",
    "http:\\\\{host}/steal",
    "HTTP://{host}/steal",
    "http://{api}.evil.example:{port}/steal",
    "\thttp://{host}/steal",
    ".{host}/steal",
)


@pytest.mark.parametrize("operation", ["list", "open"])
@pytest.mark.parametrize("spelling", ELSEWHERE)
def test_no_server_that_only_an_answer_names_is_asked(
    made: MadeNode, api: Server, spelling: str, operation: str
) -> None:
    with serving() as other:
        host = other.address.removeprefix("http://")
        named = spelling.format(
            other=other.address, host=host, api=api.address.removeprefix("http://"), port=host.rpartition(":")[2]
        )
        api.answers = [answer(items=[{"id": 1}], next_url=named, location=named), answer(items=[])]
        with contextlib.suppress(ValueError, httpx2.HTTPError, httpx2.InvalidURL):
            made.module.run(operation, {})
        assert other.sent == []
        assert len(api.sent) <= 2


@pytest.mark.parametrize("next_url", ["{api}/v1/things?page=2", "/v1/things?page=2"])
def test_pages_of_the_same_server_are_asked_with_the_key(made: MadeNode, api: Server, next_url: str) -> None:
    api.answers = [answer(items=[{"id": 1}], next_url=next_url.format(api=api.address)), answer(items=[{"id": 2}])]
    assert made.module.run("list", {}) == [{"id": 1}, {"id": 2}]
    assert [(path, headers["Authorization"]) for _, path, headers, _ in api.sent] == [
        ("/v1/things", f"Bearer {KEY}"),
        ("/v1/things?page=2", f"Bearer {KEY}"),
    ]


def test_address_of_a_server_that_the_source_names_needs_no_base(
    made: MadeNode, api: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport = importlib.import_module(f"{made.module.__name__}.transport")
    monkeypatch.setattr(transport, "BASE_URL", "")
    monkeypatch.setattr(transport, "ORIGINS", (api.address,))
    monkeypatch.delenv("THINGS_BASE_URL")
    api.answers = [answer(items=[])]
    assert transport.send_over_http("GET", transport.Told(f"{api.address}/v1/x")) == {"items": []}
    with serving() as other, pytest.raises(ValueError, match="another server"):
        transport.send_over_http("GET", transport.Told(f"{other.address}/v1/x"))


def test_such_a_node_passes_its_recordings(tmp_path: Any) -> None:
    source = tmp_path / "Things.node.js"
    source.write_text(NODE)
    result, files = run_steps(source, tmp_path / "work", ALL, name="made")
    assert result.state is SkillState.COMPLETED, result.summary
    assert json.loads(files.text("validation.json"))["passed"]


def test_half_a_character_in_a_description_is_replaced(tmp_path: Any) -> None:
    source = tmp_path / "Things.node.js"
    source.write_text(NODE.replace("description: 'things'", "description: 'half \\ud800 and whole \\ud83d\\ude00'"))
    result, files = run_steps(source, tmp_path / "work", INFER, name="made")
    assert result.state is SkillState.COMPLETED, result.summary
    assert "half ? and whole \U0001f600" in files.text("recording.json")


def test_recording_that_a_node_nests_too_deeply_is_one_error(tmp_path: Any) -> None:
    source = tmp_path / "Things.node.js"
    forged = """
process.on('exit', () => {
  const fs = process.mainModule.constructor._load('fs');
  fs.writeFileSync(process.argv[4], '{"nodes":' + '['.repeat(100000));
  process.kill(process.pid, 'SIGKILL');
});
"""
    source.write_text(NODE + forged)
    result, _ = run_steps(source, tmp_path / "work", INFER, name="made")
    assert result.state is SkillState.FAILED and "Things.node.js" in result.summary, result.summary
