"""Mistakes that people and models make in the code of a node: the tests that its document makes find each."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from fireswarm.pipelines.files import PROJECT, Carried, lay_out
from fireswarm.settings.packaged import packaged_path
from fireswarm.skills.running.in_child import load_entry
from tests.packs.test_forged_verdicts import CODE
from tests.support.documents import SCAFFOLD, run_steps

DOCUMENT = """openapi: 3.0.3
info: {title: Crates, version: "1"}
servers: [{url: https://crates.example/v2}]
paths:
  /crates:
    get:
      operationId: list
      tags: [crate]
      parameters:
        - {name: limit, in: query, schema: {type: integer}}
        - {name: offset, in: query, schema: {type: integer}}
        - {name: X-Tenant, in: header, required: true, schema: {type: string}}
      responses: {"200": {description: ok}}
    post:
      operationId: add
      tags: [crate]
      requestBody:
        content:
          application/json:
            schema:
              type: object
              required: [weight, sender]
              properties:
                weight: {type: number}
                sender: {type: string}
                receiver: {type: string}
                fragile: {type: boolean}
                tags: {type: array, items: {type: string}}
      responses: {"201": {description: ok}}
  /crates/{id}/stops/{stop}:
    parameters:
      - {name: id, in: path, required: true, schema: {type: string}}
      - {name: stop, in: path, required: true, schema: {type: integer}}
    put:
      operationId: move
      tags: [crate]
      parameters: [{name: dry_run, in: query, schema: {type: boolean}}]
      responses: {"200": {description: ok}}
    delete:
      operationId: drop
      tags: [crate]
      responses: {"204": {description: ok}}
"""
PICKED = 'pick(parameters, "fragile", "receiver", "sender", "tags", "weight")'
PAGES = 'put(parameters, "limit"), put(parameters, "offset")'
PLACE = '"/crates/" + part(parameters, "id") + "/stops/" + part(parameters, "stop")'
DRY = 'parts(put(parameters, "dry_run"))'
FIELDS = '("weight", "sender", "receiver", "fragile", "tags")'

MISTAKES = {
    "POST becomes PUT": ('"POST"', '"PUT"'),
    "DELETE becomes GET": ('"DELETE"', '"GET"'),
    "another path": ('"/crates",\n        query', '"/crate",\n        query'),
    "ids change their places": (PLACE, PLACE.replace('"id"', "0").replace('"stop"', '"id"').replace("0", '"stop"')),
    "an id is not quoted": ('part(parameters, "id")', 'parameters["id"]'),
    "an id keeps its slashes": ('part(parameters, "id")', 'part(parameters, "id").replace("%2F", "/")'),
    "two values of the query change their names": (
        f"parts({PAGES})", '{"limit": parameters.get("offset"), "offset": parameters.get("limit")}',
    ),
    "the query is fixed": (f"parts({PAGES})", '{"limit": 1, "offset": 1}'),
    "the body has no values": (PICKED, f"dict.fromkeys({FIELDS})"),
    "two values of the body change their names": (
        PICKED, f'{{**{PICKED}, "sender": parameters.get("receiver"), "receiver": parameters.get("sender")}}',
    ),
    "what is not required is left out": (PICKED, PICKED.replace(', "tags"', "")),
    "the answer is thrown away": (f'send("DELETE", {PLACE})', f'None if send("DELETE", {PLACE}) else None'),
    "more is sent than what is asked": (DRY, f'{{**{DRY}, "admin": "true"}}'),
    "the query is sent as a body too": (DRY, f'{DRY}, body={{"id": "x"}}'),
    "null is sent for what is left out": (PICKED, f"{{name: parameters.get(name) for name in {FIELDS}}}"),
    "a number becomes a text": (PICKED, f'{{**{PICKED}, "weight": str(parameters.get("weight"))}}'),
    "false is left out": (PICKED, f"{{name: value for name, value in {PICKED}.items() if value}}"),
    "the header is lost": (',\n        headers=parts(put(parameters, "X-Tenant"))', ""),
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Carried:
    place = tmp_path_factory.mktemp("made")
    lay_out({"crates.yaml": DOCUMENT}, place / "source")
    _, files = run_steps(place / "source", place / "work", (*SCAFFOLD, "test-generate"), name="made")
    return files


def found_in(code: str, files: Carried, place: Path) -> list[str]:
    """Return why calls of the node with this code differ from what its document asks for."""
    judge = load_entry(packaged_path("skills") / "code-validate", Path("scripts/skill.py")).judge
    project = files.tree(PROJECT) | {CODE.removeprefix(PROJECT): code}
    return [why for why in judge.replay(project, judge.read_expected(project), place, 60.0, "auto").values() if why]


def test_code_without_a_mistake_differs_nowhere(made: Carried, tmp_path: Path) -> None:
    assert found_in(made.text(CODE), made, tmp_path) == []


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_is_found(mistake: str, made: Carried, tmp_path: Path) -> None:
    right, (before, after) = made.text(CODE), MISTAKES[mistake]
    code = right.replace(before, after)
    assert code != right, right
    ast.parse(code)  # code that cannot be read would be no mistake of this kind
    assert found_in(code, made, tmp_path)
