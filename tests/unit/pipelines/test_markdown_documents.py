"""API documents in Markdown and HTML become nodes: calls in each usual form, and where their parameters are sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.skills.skill import SkillState
from fireswarm.pipelines import NodeSchema, load_schema
from fireswarm.pipelines.documents.counting import count_calls, measure_markdown
from fireswarm.pipelines.files import lay_out
from tests.support.documents import ALL, SCAFFOLD, made_node, run_steps, validated

FENCES = """# Branches

## List branches

```
GET /projects/:id/branches
```

| Attribute | Type | Required | Description |
| --------- | ---- | -------- | ----------- |
| `id` | integer | yes | The project |
| `search` | string | no | A part of the name |

```bash
curl --header "PRIVATE-TOKEN: x" https://git.example/api/v3/projects/5/branches
```

Example response:

| Attribute | Type |
| --- | --- |
| `name` | string |

## Create a branch

```plaintext
POST /projects/:id/branches
PUT /groups/:id/branches
```

| Attribute | Type | Required |
| --- | --- | --- |
| `id` | integer | yes |
| `ref` | string | yes |
| `branch` | string | no |

```bash
curl --request POST \\
  --url "https://git.example/api/v3/projects/5/branches?ref=main" --data '{"branch": "new"}'
curl -X PUT "https://git.example/api/v3/groups/5/branches?ref=main" -F branch=new
```
"""

FORMS = """# Notes API

Base URL: `https://notes.example/v1`

**GET** `/notes` lists notes.

### Create a note

`POST https://notes.example/v1/notes`

#### JSON body

* `text` (string, required): what it says
* `tags` (array) - words

### Others

* `PATCH /notes/{id}` changes one

| Method | Path | Meaning |
| --- | --- | --- |
| DELETE | /notes/<id> | removes one |
| `HEAD /notes` | | counts |

### Get one note
GET /notes/{id}

You may also GET /notes/all in one go.
"""

DEFINED = """---
title: polls
---

## Vote {#vote}

```http
POST /api/v1/polls/:id/votes HTTP/1.1
```

##### Path parameters

:id
: {{<required>}} String. The poll.

##### Form data parameters

choices[]
: {{<required>}} Array of Integer. What to vote for.

expires
: Integer. When.

##### 200: OK

name
: String. Of an answer.
"""

HTTP = """# Hooks

```http
POST /hooks HTTP/1.1
Host: hooks.example
Content-Type: application/json

{"url": "https://a.example", "active": true, "events": ["push"]}
```
"""

PAGE = """<h1>Shelf</h1><p>Base URL: https://shelf.example/v2</p><h3><code>GET /books/{id}</code> Get a book</h3>
<table><thead><tr><th>Name</th><th>In</th><th>Type</th></tr></thead><tbody>
<tr><td><code>full</code></td><td>query</td><td>boolean</td></tr></tbody></table>
<p><span>POST</span> <code>/books</code></p><pre><code>DELETE /books/:id
</code></pre>"""

CASES: dict[str, tuple[dict[str, str], str, dict[str, Any], dict[str, Any]]] = {
    "fence": (
        {"a.md": FENCES}, "GET /projects/{id}/branches", {"id": 5, "search": "x"},
        {"method": "GET", "path": "/projects/5/branches", "query": {"search": "x"}},
    ),
    "places by curl": (
        {"a.md": FENCES}, "POST /projects/{id}/branches", {"id": 5, "ref": "m", "branch": "b"},
        {"method": "POST", "path": "/projects/5/branches", "query": {"ref": "m"}, "body": {"branch": "b"}},
    ),
    "second call of a fence": (
        {"a.md": FENCES}, "PUT /groups/{id}/branches", {"id": 5, "ref": "m", "branch": "b"},
        {"method": "PUT", "path": "/groups/5/branches", "query": {"ref": "m"}, "multipart": {"branch": "b"}},
    ),
    "bold": ({"a.md": FORMS}, "GET /notes", {}, {"method": "GET", "path": "/notes"}),
    "list of parameters": (
        {"a.md": FORMS}, "POST /notes", {"text": "t", "tags": ["x"]},
        {"method": "POST", "path": "/notes", "body": {"text": "t", "tags": ["x"]}},
    ),
    "list of calls": ({"a.md": FORMS}, "PATCH /notes/{id}", {"id": "7"}, {"method": "PATCH", "path": "/notes/7"}),
    "table of calls": ({"a.md": FORMS}, "DELETE /notes/{id}", {"id": "7"}, {"method": "DELETE", "path": "/notes/7"}),
    "call in a cell": ({"a.md": FORMS}, "HEAD /notes", {}, {"method": "HEAD", "path": "/notes"}),
    "line": ({"a.md": FORMS}, "GET /notes/{id}", {"id": "7"}, {"method": "GET", "path": "/notes/7"}),
    "definitions": (
        {"a.md": DEFINED}, "POST /api/v1/polls/{id}/votes", {"id": "7", "choices[]": [1]},
        {"method": "POST", "path": "/api/v1/polls/7/votes", "form": {"choices[]": [1]}},
    ),
    "block of HTTP": (
        {"a.md": HTTP}, "POST /hooks", {"url": "u", "active": False, "events": []},
        {"method": "POST", "path": "/hooks", "body": {"url": "u", "active": False, "events": []}},
    ),
    "HTML": (
        {"a.html": PAGE}, "GET /books/{id}", {"id": "7", "full": True},
        {"method": "GET", "path": "/books/7", "query": {"full": True}},
    ),
    "another file": ({"a.md": FORMS, "b/c.md": HTTP}, "POST /hooks", {}, {"method": "POST", "path": "/hooks"}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_request_is_what_the_text_says(name: str) -> None:
    texts, operation, given, sent = CASES[name]
    with made_node(texts) as node:
        keys = {f"{each['method']} {each['path']}": each["key"] for each in node.schema["operations"]}
        assert node.sent_by(keys[operation], given) == sent


def test_all_calls_are_found_and_answers_are_no_parameters() -> None:
    with made_node({"a.md": FENCES, "b.md": FORMS, "c.md": DEFINED, "d.md": HTTP, "e.html": PAGE}) as node:
        schema = node.schema
        assert (schema["found"], schema["present"]) == (14, 14)
        assert "name" not in {each["name"] for each in schema["parameters"]}
        assert schema["base_url"] == "https://notes.example/v1"
        assert "/notes/all" not in {each["path"] for each in schema["operations"]}


def test_base_url_is_that_of_the_examples() -> None:
    with made_node({"a.md": FENCES}) as node:
        assert node.schema["base_url"] == "https://git.example/api/v3"


def test_example_that_fits_no_operation_is_listed() -> None:
    with made_node({"a.md": FENCES.replace("groups/5/branches?", "teams/5?")}) as node:
        (unread,) = node.schema["unread"]
        assert unread["name"] == "example PUT https://git.example/api/v3/teams/5"
        assert unread["position"].startswith("a.md:")


def test_tests_of_the_node_pass(tmp_path: Path) -> None:
    outcome, files = validated({"a.md": FENCES, "b.md": FORMS, "c.html": PAGE}, tmp_path)
    assert outcome["passed"], files.text("validation_logs.txt")


def test_advisor_is_needed_only_where_a_place_is_missing(tmp_path: Path) -> None:
    text = FENCES.replace("curl --request POST", "# ").replace("--url", "").replace("--data", "")
    lay_out({"a.md": text}, tmp_path / "source")
    _, files = run_steps(tmp_path / "source", tmp_path / "work", SCAFFOLD)
    schema = load_schema(files)
    assert [schema.missing_of(each) for each in schema.to_write()] == ["where branch, ref is sent"]
    code = files.text(f"project/nodes/{schema.name}/operations.py")
    assert code.count("NotImplementedError") == 1


def test_call_that_is_neither_found_nor_listed_is_lost() -> None:
    operation = {"key": "a.b", "method": "GET", "path": "/projects/{id}/branches"}
    content: dict[str, Any] = {"name": "n", "source_type": "TYPE2", "operations": [operation]}
    lost = ["POST /projects/{id}/branches", "PUT /groups/{id}/branches"]
    assert measure_markdown(NodeSchema.model_validate(content), {"a.md": FENCES}, "a.md").lost == lost
    content["unread"] = [{"name": name, "reason": "left out"} for name in lost]
    assert measure_markdown(NodeSchema.model_validate(content), {"a.md": FENCES}, "a.md").lost == []


@pytest.mark.parametrize(
    ("line", "is_counted"),
    [
        ("GET /a", True), ("### `GET /a` Get", True), ("- **GET** `/a`: all", True), ("| GET | /a | all |", True),
        ("1. GET /a", True), ("GET `/a` gets all", True), ("GET /a gets all", False), ("We GET /a", False),
        ("GET a", False), ("GETS /a", False), ("> GET https://x.example/a?b=c", True),
    ],
)  # fmt: skip
def test_line_is_counted_if_it_is_a_call(line: str, is_counted: bool) -> None:
    assert bool(list(count_calls(line))) == is_counted


HOSTILE = {
    "nested lists": "- " * 5_000 + "GET /a",
    "nested quotes": "> " * 5_000 + "GET /a",
    "brackets": "[" * 50_000,
    "a wide table": "|" + "a|" * 20_000 + "\n|" + "-|" * 20_000,
    "long line of curl": "```\ncurl " + "-d a " * 50_000 + "\n```",
    "quotes of curl": "```\ncurl 'https://a.example/x\n```",
    "deep JSON": "```http\nPOST /deep\n\n" + "[" * 100_000 + "\n```",
    "many names": "```\nGET /many?" + "&".join(f"a{number}=1" for number in range(150)) + "\n```",
    "name that is too long": f"```\nGET /long?{'n' * 300}=1\n```",
    "braces": "GET /{a}/{/x}}{{b}",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_does_not_stop_the_rest(name: str, tmp_path: Path) -> None:
    lay_out({"a.md": FORMS, "b.md": f"# B\n\n{HOSTILE[name]}\n"}, tmp_path / "source")
    result, files = run_steps(tmp_path / "source", tmp_path / "work", ALL, name="made")
    assert result.state is SkillState.COMPLETED, result.summary
    assert files.json("validation.json")["passed"], files.text("validation_logs.txt")
    schema = load_schema(files)
    assert {"/notes", "/notes/{id}"} <= {each.path for each in schema.operations}
    if name.startswith("nested"):
        assert [(each.name, each.position) for each in schema.unread] == [("GET /a", "b.md:3")]
