"""A stored agent from its change to the end of its task: what is saved can work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.llm.chat import ChatRequest
from fireswarm.contracts.swarm.task import TaskStatus
from tests.integration.test_thinking import act, answers_so_far, decide, one_turn, thinking, told
from tests.support.api import open_api
from tests.support.swarm import open_test_swarm

pytestmark = pytest.mark.anyio

USES = ["current_time", "web_fetch", "session_file_system"]


def call(tool: str, **given: str) -> dict[str, Any]:
    return decide(act(tool, **given))


async def test_agent_with_two_kinds_of_files_does_its_task(tmp_path: Path) -> None:
    shown_to: list[str] = []

    def script(request: ChatRequest) -> dict[str, Any]:
        shown_to.append(told(request))
        steps = [
            call("read_file", path="plan.md"),
            call("session_file_system_write_file", path="/plan.md", content="of the session"),
            call("session_file_system_read_file", path="/plan.md"),
        ]
        number = answers_so_far(request)
        if number < len(steps):
            return steps[number]
        assert "begin with `session_file_system_`" in request.system
        return decide(act("finish", answer="both were read"))

    async with open_test_swarm(session="s1") as swarm:
        core = thinking(swarm, script, tmp_path)
        (tmp_path / "space" / "plan.md").write_text("of the workspace")
        async with open_api(swarm) as api:
            agent = await api.post("/v1/agents", {"name": "x", "role": "scout"})
            await api.ok("PATCH", f"/v1/agents/{agent['id']}", {"capabilities": USES})
            context = {"path": str(tmp_path / "space")}
            sent = {"objective": "count the plans", "agent_id": agent["id"], "context": context}
            task = await api.post("/v1/tasks", sent)
            ended = await one_turn(swarm, core)
            shown = await api.get(f"/v1/tasks/{task['task_id']}")
    assert ended.status is TaskStatus.DONE, ended.error
    assert shown["result"]["summary"] == "both were read"
    assert "of the workspace" in shown_to[1] and "of the session" in shown_to[3]


@pytest.mark.parametrize(
    ("uses", "reason"),
    [
        (
            [{"id": "session_file_system", "prefix": "a_"}, {"id": "workspace", "prefix": "a_"}],
            "a_read_file is used by",
        ),
        (["nothing"], "unknown capability 'nothing'"),
    ],
)
async def test_agent_whose_capabilities_cannot_work_with_its_role_is_refused(uses: Any, reason: str) -> None:
    async with open_test_swarm(session="s1") as swarm, open_api(swarm) as api:
        agent = await api.post("/v1/agents", {"name": "x", "role": "scout"})
        path = f"/v1/agents/{agent['id']}"
        refused = await api.call("PATCH", path, {"capabilities": uses})
        assert refused.status_code == 422 and reason in refused.json()["detail"]
        made = await api.call("POST", "/v1/agents", {"name": "y", "role": "scout", "capabilities": uses})
        assert made.status_code == 422 and reason in made.json()["detail"]
        assert await api.get(path) == agent
