"""The swarm as an MCP server, used by the client of the official package: in this process, over stdio and HTTP."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from fireswarm.api.mcp_server.server import SwarmTools
from fireswarm.contracts.skills.artifact import ANSWER, Artifact
from fireswarm.contracts.skills.permissions import Approval
from fireswarm.contracts.skills.skill import Question
from fireswarm.contracts.swarm.outcome import Waiting
from fireswarm.contracts.swarm.task import StatusReason
from fireswarm.redaction import Redactor
from tests.support.console import CONSOLE_SECRET, blocked
from tests.support.fleet import environment, lay_out, swarm_up
from tests.support.patience import PATIENCE_SECONDS
from tests.support.swarm import SwarmRig, done, open_test_swarm

pytestmark = pytest.mark.anyio

SKILLS = {
    "ask": """
    from fireswarm.contracts.skills.skill import Question, SkillResult, SkillState

    def run(request):
        if "color" not in request.answers:
            question = Question(name="color", description="Which color?")
            return SkillResult(state=SkillState.INPUT_REQUIRED, summary="asks", questions=(question,))
        return SkillResult(summary=f"painted it {request.answers['color']}")
    """
}


@pytest.fixture
async def swarm() -> AsyncGenerator[SwarmRig]:
    async with open_test_swarm(session="s1") as opened:
        yield opened


def client_of(swarm: SwarmRig, *, approves: bool = False) -> Client:
    return Client(SwarmTools(swarm.client, Redactor((CONSOLE_SECRET,)), approves).make_server())


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    """Call a tool and return what it gives, parsed."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    structured: Any = result.structured_content
    return structured["result"] if set(structured) == {"result"} else structured


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return "".join(getattr(part, "text", "") for part in result.content)


async def test_client_submits_waits_answers_and_reads_files(swarm: SwarmRig) -> None:
    async with client_of(swarm) as client:
        made = await call(client, "submit_objective", objective="paint the gate", role="scout")
        again = await call(client, "submit_objective", objective="paint the gate", role="scout")
        assert made["created"] and not again["created"] and made["task_id"] == again["task_id"]
        held = await swarm.claim_one()
        question = Question(name="color", description="Which color?")
        await swarm.settle(held, Waiting(StatusReason.INPUT_REQUIRED, "asks", (question,)))
        asking = await call(client, "wait_for_task", task_id=made["task_id"])
        assert asking["status"] == "blocked" and asking["questions"][0]["text"] == "Which color?"
        assert (await call(client, "answer_questions", task_id=made["task_id"], answers={"color": "red"}))[
            "status"
        ] == ("queued")
        answer = Artifact(type=ANSWER, name="answer", value="It is red.")
        uri = await swarm.client.parts.blobs.put(f"s1/{made['task_id']}/picture.bin", b"\xff\x00\xfe")
        picture = Artifact(type="file", name="picture.bin", uri=uri)
        await swarm.settle(await swarm.claim_one(), done("painted", artifacts=(answer, picture)))
        ended = await call(client, "get_task", task_id=made["task_id"])
        assert ended["status"] == "done" and ended["answer"] == "It is red."
        contents = [(await client.read_resource(file["uri"])).contents[0] for file in ended["files"]]
        assert contents[0].text == "It is red." and contents[1].blob == "/wD+"  # type: ignore[union-attr]
        assert [task["task_id"] for task in await call(client, "list_tasks", status="done")] == [made["task_id"]]


async def test_errors_are_told_to_the_model_without_secrets(swarm: SwarmRig, tmp_path: Path) -> None:
    async with client_of(swarm) as client:
        assert "no task" in await refusal(client, "get_task", task_id="nothing")
        assert "no role" in await refusal(client, "submit_objective", objective="x", role="pilot")
        told = await refusal(client, "submit_objective", objective="x", path=str(tmp_path / CONSOLE_SECRET))
        assert "does not exist" in told and CONSOLE_SECRET not in told
        with pytest.raises(MCPError):
            await client.read_resource("fireswarm://tasks/nothing/files/0")


async def test_tasks_of_another_session_do_not_exist_for_a_client(swarm: SwarmRig) -> None:
    other = await swarm.submit("of another", session="s2")
    async with client_of(swarm) as client:
        for tool, more in (
            ("get_task", {}),
            ("cancel_task", {}),
            ("say_to_task", {"text": "stop"}),
            ("retry_task", {}),
        ):
            assert "no task" in await refusal(client, tool, task_id=other.task_id, **more)
        with pytest.raises(MCPError):
            await client.read_resource(f"fireswarm://tasks/{other.task_id}/files/0")
        assert await call(client, "list_tasks") == []
    assert (await swarm.task(other.task_id)).status.value == "queued"


async def test_no_file_outside_of_the_blob_store_is_read(swarm: SwarmRig) -> None:
    task = await swarm.submit("reads")
    secret = Artifact(type="file", name="passwd", uri="file:///etc/passwd")
    await swarm.settle(await swarm.claim_one(), done("short", artifacts=(secret,)))
    async with client_of(swarm) as client:
        with pytest.raises(MCPError):
            await client.read_resource(f"fireswarm://tasks/{task.task_id}/files/0")


async def test_a_client_approves_nothing_unless_it_is_allowed_to(swarm: SwarmRig) -> None:
    approval = Approval(tool="run_command", shown="rm -r build", because="it deletes")
    question = Question(name="approve", description="may it?", approval=approval)
    task = await blocked(swarm, question, reason=StatusReason.APPROVAL_REQUIRED)
    async with client_of(swarm) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert not names & {"approve_action", "deny_action"}
        told = await refusal(client, "answer_questions", task_id=task.task_id, answers={"approve": "yes"})
        assert "a person gives" in told
    assert (await swarm.task(task.task_id)).questions
    async with client_of(swarm, approves=True) as client:
        [asked] = (await call(client, "get_task", task_id=task.task_id))["questions"]
        assert asked["approval"] == "rm -r build"
        assert (await call(client, "deny_action", task_id=task.task_id, question=asked["key"]))["status"] == "queued"


async def test_foreign_client_over_stdio_has_a_question_answered_by_a_live_swarm(tmp_path: Path) -> None:
    lay_out(tmp_path, SKILLS, settings={})
    started = StdioServerParameters(
        command=sys.executable, args=["-m", "fireswarm.cli", "mcp"], cwd=tmp_path, env=environment()
    )
    with swarm_up(tmp_path, "--roles", "scout"):
        async with Client(started, read_timeout_seconds=PATIENCE_SECONDS) as client:
            made = await call(client, "submit_objective", objective="paint the gate with skill ask", role="scout")
            asking = await call(client, "wait_for_task", task_id=made["task_id"], seconds=PATIENCE_SECONDS)
            assert asking["questions"][0]["text"] == "Which color?", asking
            await call(client, "answer_questions", task_id=made["task_id"], answers={"color": "red"})
            ended = await call(client, "wait_for_task", task_id=made["task_id"], seconds=PATIENCE_SECONDS)
            assert ended["status"] == "done" and ended["answer"] == "painted it red"


async def test_client_over_http_needs_the_token(tmp_path: Path) -> None:
    lay_out(tmp_path, SKILLS, settings={})
    command = [sys.executable, "-m", "fireswarm.cli", "mcp", "--port", "0", "--store", "memory"]
    env = {**environment(), "FIRESWARM_API_TOKEN": "a-token-of-twenty-four-chars"}
    process = await anyio.open_process(command, cwd=tmp_path, env=env, stdin=None, stdout=None)
    try:
        assert process.stderr is not None
        said = (await process.stderr.receive()).decode()
        address = said.split()[2].rstrip(";")
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        async with httpx2.AsyncClient(timeout=PATIENCE_SECONDS) as stranger:
            assert (await stranger.post(address, json=body)).status_code == 401
        headers = {"Authorization": f"Bearer {env['FIRESWARM_API_TOKEN']}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=PATIENCE_SECONDS) as known,
            Client(streamable_http_client(address, http_client=known)) as client,
        ):
            made = await call(client, "submit_objective", objective="look", role="scout")
            assert made["status"] == "queued"
    finally:
        process.terminate()
        await process.wait()
