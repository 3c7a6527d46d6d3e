"""`swarm a2a` as a process beside a live swarm, called by the client of the official package."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from a2a import types
from a2a.client import Client, ClientConfig, ClientFactory
from a2a.client.card_resolver import A2ACardResolver

from tests.support.a2a import State, get, message, send, text_of
from tests.support.fleet import environment, lay_out, swarm_up
from tests.support.patience import PATIENCE_SECONDS
from tests.support.swarm_command import swarm

pytestmark = pytest.mark.anyio

TOKEN = "a-token-of-twenty-four-chars"
SKILLS = {
    "ask": """
    from pathlib import Path
    from urllib.parse import unquote
    from fireswarm.contracts.skills.skill import Question, SkillResult, SkillState

    def run(request):
        if "color" not in request.answers:
            question = Question(name="color", description="Which color?")
            return SkillResult(state=SkillState.INPUT_REQUIRED, summary="asks", questions=(question,))
        given = [Path(unquote(item.uri.removeprefix("file://"))).read_bytes() for item in request.attachments]
        folder = request.workdir / "outputs"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "copy.bin").write_bytes(b"".join(given))
        return SkillResult(summary=f"painted it {request.answers['color']}")
    """
}
PICTURE = bytes(range(256)) * 40


@contextlib.asynccontextmanager
async def serving_process(root: Path, command: str = "a2a") -> AsyncGenerator[str]:
    """Run a command of the swarm in *root*; gives the address at which it serves agents."""
    started = [sys.executable, "-m", "fireswarm.cli", command, "--port", "0"]
    env = {**environment(), "FIRESWARM_API_TOKEN": TOKEN}
    process = await anyio.open_process(started, cwd=root, env=env, stdin=subprocess.DEVNULL, stderr=None)
    try:
        assert process.stdout is not None
        with anyio.fail_after(PATIENCE_SECONDS):
            said = ""
            while (found := re.search(r"A2A agents on (http://127.0.0.1:\d+)/a2a", said)) is None:
                said += (await process.stdout.receive()).decode()
        yield found[1]
    finally:
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0


@contextlib.asynccontextmanager
async def calling(address: str, **config: Any) -> AsyncGenerator[Client]:
    """The official client of the scout at *address*."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(headers=headers, timeout=PATIENCE_SECONDS) as http:
        card = await A2ACardResolver(http, f"{address}/a2a/scout").get_agent_card()
        yield ClientFactory(ClientConfig(httpx_client=http, **config)).create(card)


async def test_foreign_client_has_a_file_worked_on_by_a_live_swarm(tmp_path: Path) -> None:
    lay_out(tmp_path, SKILLS, settings={})
    with swarm_up(tmp_path, "--roles", "scout"):
        async with serving_process(tmp_path) as address, calling(address, streaming=False) as client:
            picture = types.Part(raw=PICTURE, filename="picture.bin", media_type="application/octet-stream")
            asking = await send(client, message("paint the gate with skill ask", picture))
            assert asking.status.state == State.TASK_STATE_INPUT_REQUIRED, text_of(asking)
        async with serving_process(tmp_path) as address, calling(address) as client:
            assert (await get(client, asking.id)).status.state == State.TASK_STATE_INPUT_REQUIRED
            answer = message("red", task_id=asking.id, context_id=asking.context_id)
            events = [event async for event in client.send_message(types.SendMessageRequest(message=answer))]
            assert events[-1].status_update.status.state == State.TASK_STATE_COMPLETED, events[-1]
            ended = await get(client, asking.id)
    assert ended.artifacts[0].parts[0].text == "painted it red"
    [copy] = [artifact for artifact in ended.artifacts if artifact.name.endswith("copy.bin")]
    assert copy.parts[0].raw == PICTURE


async def test_api_serves_the_agents_beside_itself(tmp_path: Path) -> None:
    lay_out(tmp_path, SKILLS, settings={})
    async with serving_process(tmp_path, "api") as address, calling(address, polling=True, streaming=False) as client:
        made = await send(client, message("paint the gate"))
        async with httpx.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}) as http:
            shown = (await http.get(f"{address}/v1/tasks/{made.id}")).json()
    assert shown["created_by"] == "a2a" and shown["assigned_to"] == "scout"


async def test_server_for_other_machines_needs_a_token(tmp_path: Path) -> None:
    lay_out(tmp_path, {}, settings={})
    refused = swarm(tmp_path, "a2a", "--host", "0.0.0.0", "--port", "0")
    assert refused.returncode and "does not start without authentication" in refused.stderr
    refused = swarm(tmp_path, "a2a", "--host", "0.0.0.0", "--port", "0", FIRESWARM_API_TOKEN=TOKEN)
    assert refused.returncode and "give --url" in refused.stderr


async def test_missing_package_is_named_with_its_install_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(tmp_path, {}, settings={})

    def find_nothing(name: str) -> None:
        assert name == "a2a"

    monkeypatch.setattr("fireswarm.cli.swarm.api.find_spec", find_nothing)
    refused = swarm(tmp_path, "a2a", "--port", "0")
    assert refused.returncode and "needs the package a2a-sdk" in refused.stderr and "install" in refused.stderr
