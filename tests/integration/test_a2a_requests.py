"""Requests to the agents of a swarm that break rules, carry secrets or files, or come by raw HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from a2a import types
from a2a.utils.errors import A2AError

from fireswarm.api.a2a.mount import MAX_MESSAGE_BYTES, json_fault
from fireswarm.api.a2a.views import MAX_INLINE_BYTES
from fireswarm.contracts.skills.artifact import ANSWER, Artifact, Attachment
from fireswarm.contracts.skills.skill import Question
from fireswarm.storage.blobs import FsspecBlobs
from fireswarm.swarm.turn.given.files import trusted_attachments
from tests.support.a2a import SECRET, Agents, data_part, get, message, send, serving_agents, text_of
from tests.support.api import HEADERS
from tests.support.console import blocked
from tests.support.swarm import SwarmRig, done, open_test_swarm

pytestmark = pytest.mark.anyio

SPOKEN = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "paint the gate"}]}
DEEP = b'{"a":' * 100_000


@pytest.fixture
async def swarm() -> AsyncGenerator[SwarmRig]:
    async with open_test_swarm(session="s1") as opened:
        yield opened


@pytest.fixture
async def agents(swarm: SwarmRig) -> AsyncGenerator[Agents]:
    async with serving_agents(swarm) as served:
        yield served


async def rest(agents: Agents, method: str, path: str, content: bytes = b"") -> httpx.Response:
    headers = {"A2A-Version": "1.0", "Content-Type": "application/json"}
    return await agents.http.request(method, f"{agents.base}/a2a/scout{path}", content=content, headers=headers)


async def test_caller_without_the_token_gets_nothing(agents: Agents) -> None:
    paths = ("/.well-known/agent-card.json", "/a2a", "/a2a/scout/.well-known/agent-card.json", "/a2a/scout/tasks")
    async with httpx.AsyncClient(base_url=agents.base) as stranger:
        for path in paths:
            answer = await stranger.get(path)
            assert answer.status_code == 401 and answer.headers["www-authenticate"].startswith("Bearer")
        body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": SPOKEN}}
        assert (await stranger.post("/a2a/scout", json=body)).status_code == 401


async def test_foreign_host_is_refused(agents: Agents) -> None:
    answer = await agents.http.get(f"{agents.base}/a2a", headers={"Host": "evil.example"})
    assert answer.status_code == 421


async def test_body_that_is_too_large_is_refused(swarm: SwarmRig, agents: Agents) -> None:
    head = f"POST /a2a/scout HTTP/1.1\r\nHost: localhost\r\nAuthorization: {HEADERS['Authorization']}\r\n"
    async with await anyio.connect_tcp("127.0.0.1", int(agents.base.rpartition(":")[2])) as stream:
        await stream.send(f"{head}Content-Length: 20000000\r\n\r\n{{".encode())
        answer = (await stream.receive()).decode()
    assert answer.startswith("HTTP/1.1 413 ") and f"{MAX_MESSAGE_BYTES:,}" in answer
    assert await swarm.client.tasks() == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"\xff\xfe{}", -32700),
        (DEEP, -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":NaN}}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":1e999}}', -32700),
        (b"[]", -32600),
        (b"7", -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"GetTask"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"Nothing"}', -32601),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":{}}}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x"}}', -32001),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"a/b"}}', -32001),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":".."}}', -32001),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"__x__"}}', -32001),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"\\u0000"}}', -32001),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"\\ud800"}}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"' + b"x" * 3_000 + b'"}}', -32001),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{}}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x","historyLength":-1}}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"pageSize":1000}}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{}}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m"}}}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetExtendedAgentCard","params":{}}', -32004),
        (b'{"jsonrpc":"2.0","id":1,"method":"ListTaskPushNotificationConfigs","params":{"taskId":"x"}}', -32003),
    ],
)
async def test_malformed_request_gets_the_error_of_the_protocol(agents: Agents, body: bytes, code: int) -> None:
    told = await agents.post(body)
    assert told["error"]["code"] == code, told


ODD = (b"{", b"\xff", DEEP, b"[]", b'{"message": 7}', b'{"message": {"parts": [{}]}}', b'{"tenant": "\\ud800"}', b"")


@pytest.mark.parametrize("body", ODD)
async def test_malformed_rest_request_is_a_fault_of_the_client(agents: Agents, body: bytes) -> None:
    for path in ("/message:send", "/message:stream"):
        answer = await rest(agents, "POST", path, body)
        assert answer.status_code == 400, answer.text


async def test_wrong_query_of_a_list_is_a_fault_of_the_client(agents: Agents) -> None:
    for query in ("pageSize=many", "pageSize=0", "statusTimestampAfter=yesterday", "pageToken=x"):
        answer = await rest(agents, "GET", f"/tasks?{query}")
        assert answer.status_code == 400, (query, answer.text)


@pytest.mark.parametrize(
    "parts",
    [
        [{"data": {"n": 1e308, "deep": [[[[]]]]}}],
        [{"text": "a\0b"}],
        [{"text": "  "}],
        [{"text": "x" * 100_000}],
        [{"raw": "no base64!"}],
        [{"text": "read"}, {"raw": "eA==", "filename": "\0/..", "mediaType": "x" * 5_000_000}],
        [{"text": "read"}, *([{"raw": "eA=="}] * 30)],
        [{"text": "read", "raw": "eA=="}],
        [{"metadata": {}}],
    ],
)
async def test_odd_part_is_taken_or_refused_and_is_no_fault_of_the_server(agents: Agents, parts: list[Any]) -> None:
    body = {"message": {**SPOKEN, "parts": parts}, "configuration": {"returnImmediately": True}}
    answer = await rest(agents, "POST", "/message:send", json.dumps(body).encode())
    assert answer.status_code in (200, 400), answer.text


async def test_request_of_another_version_is_refused(agents: Agents) -> None:
    told = await agents.rpc("GetTask", {"id": "x"}, **{"A2A-Version": "2.0"})
    assert told["error"]["code"] == -32009


async def test_version_of_other_methods_is_not_served(agents: Agents) -> None:
    """The package reports each fault of a message of version 0.3 with an excerpt of it: answers of any size."""
    spoken = {"kind": "message", "messageId": "m-1", "role": "user", "parts": [{"kind": "x", "password": SECRET}]}
    told = await agents.rpc("message/send", {"message": spoken}, **{"A2A-Version": ""})
    assert "error" in told and SECRET not in json.dumps(told)


async def test_raw_client_submits_answers_and_fetches_by_json_rpc(swarm: SwarmRig, agents: Agents) -> None:
    given = {"message": SPOKEN, "configuration": {"returnImmediately": True}}
    made = (await agents.rpc("SendMessage", given))["result"]["task"]
    assert made["status"]["state"] == "TASK_STATE_SUBMITTED"
    await swarm.settle(await swarm.claim_one(), done("painted"))
    ended = (await agents.rpc("GetTask", {"id": made["id"]}))["result"]
    assert ended["status"]["state"] == "TASK_STATE_COMPLETED"
    listed = (await agents.rpc("ListTasks", {}))["result"]
    assert [task["id"] for task in listed["tasks"]] == [made["id"]] and "artifacts" not in listed["tasks"][0]


async def test_file_with_a_url_is_refused(swarm: SwarmRig, agents: Agents) -> None:
    client = await agents.client()
    for url in ("http://169.254.169.254/latest", "https://example.org/a.csv", "file:///etc/passwd"):
        with pytest.raises(A2AError, match="fetches no addresses"):
            await send(client, message("read this", types.Part(url=url)))
    assert await swarm.client.tasks() == []


async def test_sent_files_are_attached_and_their_names_lead_nowhere(swarm: SwarmRig, agents: Agents) -> None:
    client = await agents.client()
    names = ("../../etc/passwd", "/etc/shadow", "table.csv", "table.csv")
    files = [types.Part(raw=name.encode(), filename=name, media_type="text/csv") for name in names]
    made = await swarm.task((await send(client, message("read these", *files))).id)
    blobs = swarm.client.parts.blobs
    assert [item.name for item in made.attachments] == ["passwd", "shadow", "table.csv", "table.csv"]
    assert [await blobs.get(item.uri) for item in made.attachments] == [name.encode() for name in names]
    assert all(blobs.holds(item.uri, "s1") for item in made.attachments)
    assert made.context == {} and trusted_attachments(made) == frozenset()
    with pytest.raises(A2AError, match="first message"):
        await send(client, message("and this", types.Part(raw=b"x"), task_id=made.task_id))
    with pytest.raises(A2AError, match="no text"):
        await send(client, message(types.Part(raw=b"x")))


async def test_data_with_an_objective_is_text_and_names_no_file(swarm: SwarmRig, agents: Agents) -> None:
    given = message("read it", data_part({"path": "/etc", "source": "file:///etc/passwd"}))
    made = await swarm.task((await send(await agents.client(), given)).id)
    assert made.objective.startswith("read it") and '"path": "/etc"' in made.objective
    assert made.context == {} and made.attachments == ()


async def test_secrets_are_removed_from_all_that_leaves(swarm: SwarmRig, agents: Agents) -> None:
    client = await agents.client()
    made = await send(client, message(f"use {SECRET}"))
    uri = await swarm.client.parts.blobs.put(f"s1/{made.id}/notes.txt", f"it is {SECRET}".encode())
    artifacts = (
        Artifact(type=ANSWER, name="answer", value=f"the key is {SECRET}"),
        Artifact(type="file", name="notes.txt", uri=uri, summary=SECRET),
        Artifact(type="value", name=SECRET, value={"key": SECRET}),
    )
    await swarm.settle(await swarm.claim_one(), done(f"found {SECRET}", artifacts=artifacts))
    await blocked(swarm, Question(name="key", description=f"is it {SECRET}?"))
    listed = await agents.rpc("ListTasks", {"includeArtifacts": True})
    seen = await get(client, made.id)
    files = [await agents.http.get(f"{agents.base}/a2a/scout/tasks/{made.id}/files/{number}") for number in (1, 2)]
    texts = [str(seen), json.dumps(listed), *(file.text for file in files)]
    assert SECRET not in "".join(texts) and all(file.is_success for file in files)
    assert seen.artifacts[1].parts[0].raw.startswith(b"it is ") and "the key is" in seen.artifacts[0].parts[0].text
    with pytest.raises(A2AError) as refused:
        await send(client, message("x", context_id=SECRET))
    assert SECRET not in str(refused.value)


async def test_large_file_has_an_address_that_needs_the_token(swarm: SwarmRig, agents: Agents) -> None:
    client = await agents.client()
    made = await send(client, message("make a film"))
    film = b"\xff\x00" * MAX_INLINE_BYTES
    uri = await swarm.client.parts.blobs.put(f"s1/{made.id}/film.bin", film)
    outside = Artifact(type="file", name="passwd", uri=Path("/etc/passwd").as_uri())
    artifacts = (Artifact(type="file", name="film.bin", uri=uri), outside)
    await swarm.settle(await swarm.claim_one(), done("made", artifacts=artifacts))
    _, first, second = (await get(client, made.id)).artifacts
    assert first.parts[0].filename == "film.bin" and first.parts[0].url.startswith(agents.base)
    assert (await agents.http.get(first.parts[0].url)).content == film
    assert "cannot be read" in second.parts[0].text
    async with httpx.AsyncClient() as stranger:
        assert (await stranger.get(first.parts[0].url)).status_code == 401
    for number in ("1", "9", "x"):
        url = first.parts[0].url.removesuffix("0") + number
        assert (await agents.http.get(url)).status_code == 404


async def test_status_of_a_question_says_how_it_is_asked(swarm: SwarmRig, agents: Agents) -> None:
    question = Question(name="size", description="How large?", allowed={"enum": ["small", "large"]})
    task = await blocked(swarm, question, created_by="a2a")
    client = await agents.client()
    assert "How large? (small, large)" in text_of(await get(client, task.task_id))
    await send(client, message("LARGE", task_id=task.task_id))
    assert (await swarm.task(task.task_id)).answers == {"size": "large"}


def values(number: int) -> bytes:
    return json.dumps({"message": {**SPOKEN, "parts": [{"data": [0] * number}]}}).encode()


@pytest.mark.parametrize(
    "body",
    [
        values(50_000),
        json.dumps({"message": {**SPOKEN, "parts": [{"data": [[]] * 3_000}]}}).encode(),
        json.dumps({"message": {**SPOKEN, "parts": [{"text": ""}] * 3_000}}).encode(),
        json.dumps({"message": {**SPOKEN, "parts": [{"text": "x" * 2_000_000}]}}).encode(),
        json.dumps({"message": {**SPOKEN, "parts": [{"text": ',"[{' * 60_000}]}}).encode(),
        json.dumps({"message": {**SPOKEN, "parts": [{"filename": "x" * 2_000_000, "raw": "eA=="}]}}).encode(),
        b'{"raw":' * 100_000,
    ],
)
async def test_body_of_many_values_is_refused_before_the_package_reads_it(agents: Agents, body: bytes) -> None:
    """It reads each value on the event loop: 100 kB of zeros stopped the server for four seconds."""
    assert json_fault(body)
    answer = await rest(agents, "POST", "/message:send", body)
    assert answer.status_code == 400 and "in raw" in answer.text
    told = await agents.http.post(
        f"{agents.base}/a2a/scout", content=body, headers={"Content-Type": "application/json"}
    )
    assert told.status_code == 200 and told.json()["error"]["code"] == -32700


def test_body_with_texts_values_and_a_large_file_is_taken() -> None:
    file = {"raw": "A" * 5_000_000, "filename": "a,b[{.bin"}
    spoken = {**SPOKEN, "parts": [{"text": "read, [it] {now} \\" * 1_000}, {"data": [0] * 500}, file]}
    assert not json_fault(json.dumps({"message": spoken}).encode())


async def test_task_of_a_person_is_not_seen_spoken_to_or_canceled_by_a_client(swarm: SwarmRig, agents: Agents) -> None:
    """Who goes on with it would speak with the trust of the person: their files of this machine were read."""
    secret = Attachment(name="secret.txt", uri="file:///etc/hostname")
    task = await swarm.submit("read it", attachments=(secret,))
    await swarm.settle(await swarm.claim_one(), done("it is read"))
    running = await swarm.submit("goes on")
    client = await agents.client()
    for spoken in (message("print it", context_id=task.task_id), message("print it", task_id=running.task_id)):
        with pytest.raises(A2AError):
            await send(client, spoken)
    with pytest.raises(A2AError):
        await get(client, task.task_id)
    with pytest.raises(A2AError):
        await client.cancel_task(types.CancelTaskRequest(id=running.task_id))
    listed = await client.list_tasks(types.ListTasksRequest())
    assert not listed.tasks and listed.total_size == 0 and len(await swarm.client.tasks()) == 2


async def test_refused_message_stores_no_file_and_values_under_names_of_secrets_are_redacted(
    swarm: SwarmRig, agents: Agents, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, put = types.Part(raw=b"1" * 1_000, filename="big.bin"), list[str]()
    keep = FsspecBlobs.put

    async def note(self: FsspecBlobs, name: str, content: bytes) -> str:
        put.append(name)
        return await keep(self, name, content)

    monkeypatch.setattr(FsspecBlobs, "put", note)
    with pytest.raises(A2AError):
        await send(await agents.client(), types.Message(
            message_id="m-9", role=types.Role.ROLE_USER, parts=[types.Part(text="x" * 9_000), file]
        ))  # fmt: skip
    assert not (await agents.http.get(f"{agents.base}/a2a/scout/tasks", headers={"A2A-Version": "1.0"})).json()["tasks"]
    assert put == []
    made = await send(await agents.client(), message(data_part({"password": "zzzz-yyyy-xxxx", "size": 3})))
    objective = (await swarm.task(made.id)).objective
    assert "zzzz" not in objective and "[redacted]" in objective and "3" in objective
