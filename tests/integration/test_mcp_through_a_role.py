"""A role uses a real MCP server over stdio: mcp-server-time, as it comes from PyPI."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import anyio
import psutil
import pytest

from fireswarm.contracts.ports import Store
from fireswarm.contracts.swarm.task import Task, TaskSpec, TaskStatus
from fireswarm.runs.sinks.run_reader import read_events
from fireswarm.settings import Settings
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.build import parse_task
from fireswarm.swarm.opening.open_parts import open_parts
from fireswarm.swarm.worker.loop import Worker
from tests.support.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.anyio

MODEL = '''
import json

TOOL = "mcp_time__convert_time"

def answer(request):
    """Ask the server, then conclude with what it said."""
    outputs = request.messages[-1].outputs
    if not outputs:
        assert TOOL in [tool.name for tool in request.tools], "the tools of the server are offered"
        asked = {"source_timezone": "Asia/Tokyo", "time": "12:00", "target_timezone": "UTC"}
        return {"calls": [{"name": TOOL, "input": asked}], "text": "the clock knows"}
    assert not outputs[0].failed, outputs
    return f"noon in Tokyo is {json.loads(outputs[0].text)['target']['datetime']}"
'''

ROLE = """---
name: scout
description: knows what time it is
skills: [workspace-inventory]
capabilities:
  - id: mcp
    config: {servers: {time: {command: COMMAND, args: ["-m", "mcp_server_time"]}}}
---
# Scout

Say what time it is.
"""


async def test_role_calls_the_tool_of_an_mcp_server(tmp_path: Path) -> None:
    role = tmp_path / "roles" / "scout" / "ROLE.md"
    role.parent.mkdir(parents=True)
    role.write_text(ROLE.replace("COMMAND", json.dumps(sys.executable)))
    (tmp_path / "model.py").write_text(MODEL)
    settings = Settings.model_validate(
        {
            "root": tmp_path,
            "session": "s",
            "store": {"uri": "memory"},
            "model": {"provider": "scripted", "script": "model.py:answer"},
        }
    )
    async with open_parts(settings, thinks=True) as core:
        worker = Worker(core, "scout", "scout-1")
        spec = TaskSpec(
            objective="When is it noon in Tokyo, in the list of time zones?", assigned_to="scout", session_hash="s"
        )
        task = (await core.board.submit(spec)).task
        ended: list[Task] = []
        async with anyio.create_task_group() as group:
            group.start_soon(worker.run)
            with anyio.fail_after(PATIENCE_SECONDS):
                ended.append(await _ended(core.store, task.task_id))
            worker.stop()
        [done] = ended
        assert done.status is TaskStatus.DONE, (done.status_reason, done.error)
        assert done.result is not None and "T03:00:00+00:00" in done.result.summary
        run = await core.store.get(f"agent_runs/{done.run_id(done.epoch)}")
        assert any("mcp_time__convert_time" in str(event) for event in await read_events(core.store, run))
    commands = [process.as_dict(["cmdline"])["cmdline"] or [] for process in psutil.Process().children(recursive=True)]
    servers = [command for command in commands if "mcp_server_time" in command]  # a zombie has no command line
    assert servers == []


async def _ended(store: Store, task_id: str) -> Task:
    async with store.listen(queries.chain(task_id)) as snapshots:
        async for found in snapshots:
            task = parse_task(found[0].data, found[0].path) if found else None
            if task is not None and (task.status.terminal or task.status is TaskStatus.BLOCKED):
                return task
    raise AssertionError("the listener ended")
