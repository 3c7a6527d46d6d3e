"""The API's OpenAPI document: it is valid, names its operations, and a client that is generated from it works."""

from __future__ import annotations

import importlib
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from openapi_python_client import generate
from openapi_python_client.config import Config, ConfigFile, MetaType
from openapi_spec_validator import validate

from fireswarm.contracts.skills.artifact import Artifact
from tests.support.api import TOKEN, serving
from tests.support.patience import PATIENCE_SECONDS
from tests.support.swarm import SwarmRig, done, open_test_swarm

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "schemas" / "openapi.json"
PACKAGE = "client_of_the_api"

Load = Callable[[str], ModuleType]


def operations() -> list[dict[str, Any]]:
    paths = json.loads(DOCUMENT.read_text(encoding="utf-8"))["paths"]
    return [operation for methods in paths.values() for operation in methods.values()]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Generate a client, without a warning; return what imports a module of it."""
    options = ConfigFile(post_hooks=[])  # its hooks run ruff, which only makes the code prettier
    config = Config.from_sources(options, MetaType.NONE, DOCUMENT, "utf-8", False, tmp_path / PACKAGE)
    assert [f"{fault.header}: {fault.detail}" for fault in generate(config=config)] == []
    monkeypatch.syspath_prepend(str(tmp_path))
    return lambda name: importlib.import_module(f"{PACKAGE}.{name}")


def test_document_is_valid_openapi() -> None:
    validate(json.loads(DOCUMENT.read_text(encoding="utf-8")))


def test_operations_are_named_by_unique_readable_ids() -> None:
    ids = [operation["operationId"] for operation in operations()]
    assert [name for name, count in Counter(ids).items() if count > 1] == []
    assert [name for name in ids if not re.fullmatch(r"[a-z]+(_[a-z]+)*", name)] == []
    assert {"list_tasks", "get_task", "submit_task", "get_artifact", "change_agent"} <= {*ids}


def test_changes_of_an_agent_have_no_defaults_that_a_client_would_send() -> None:
    document = json.loads(DOCUMENT.read_text(encoding="utf-8"))
    fields = document["components"]["schemas"]["AgentChange"]["properties"]
    assert [name for name, field in fields.items() if "default" in field] == []


@pytest.mark.anyio
async def test_generated_client_submits_reads_lists_and_downloads(load: Load) -> None:
    for operation in operations():
        [tag] = operation["tags"]
        assert load(f"api.{tag}.{operation['operationId']}").asyncio_detailed
    async with open_test_swarm(session="s1") as swarm, serving(swarm) as port:
        timeout = importlib.import_module("httpx").Timeout(PATIENCE_SECONDS)
        address = f"http://127.0.0.1:{port}"
        async with load("client").AuthenticatedClient(base_url=address, token=TOKEN, timeout=timeout) as client:
            await use(load, client, swarm)


async def use(load: Load, client: Any, swarm: SwarmRig) -> None:
    body = load("models").TaskCreate(objective="write a report", role="scout")
    made = await load("api.tasks.submit_task").asyncio(client=client, body=body)
    assert made.status.value == "queued" and made.objective == "write a report"
    uri = await swarm.core.blobs.put(f"s1/{made.task_id}/report.md", b"# Report\n")
    artifact = Artifact(type="report", name="report.md", uri=uri)
    await swarm.settle(await swarm.claim_one(), done("written", artifacts=(artifact,)))
    shown = await load("api.tasks.get_task").asyncio(made.task_id, client=client, wait=60.0)
    assert shown.status.value == "done" and shown.result.summary == "written"
    page = await load("api.tasks.list_tasks").asyncio(client=client, text="report")
    assert [item.task_id for item in page.items] == [made.task_id]
    name = shown.result.artifacts[0].name
    file = await load("api.tasks.get_artifact").asyncio_detailed(made.task_id, name, client=client)
    assert file.status_code == 200 and file.parsed.payload.read() == b"# Report\n"
    known = file.headers["etag"]
    same = await load("api.tasks.get_artifact").asyncio_detailed(made.task_id, name, client=client, if_none_match=known)
    assert same.status_code == 304 and same.content == b""
    problem = await load("api.tasks.get_task").asyncio("none", client=client)
    assert problem.code == "not_found" and not problem.retryable
