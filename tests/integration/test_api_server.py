"""The API's server under clients that break the rules: half-open connections, odd hosts, deep JSON, wrong bodies."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

import anyio
import httpx2
import psutil
import pytest
from anyio.abc import SocketStream

from fireswarm.api import connection, server, session
from fireswarm.api.auth import Access, GoogleTokens
from fireswarm.api.connection import MAX_AHEAD_BYTES
from fireswarm.contracts.skills.artifact import Artifact
from fireswarm.contracts.skills.skill import Question
from fireswarm.contracts.swarm.outcome import Waiting
from fireswarm.contracts.swarm.task import StatusReason
from tests.support.api import HEADERS, TOKEN, serving
from tests.support.fleet import until
from tests.support.patience import PATIENCE_SECONDS
from tests.support.swarm import SwarmRig, done, open_test_swarm

pytestmark = pytest.mark.anyio

START = b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + TOKEN.encode()
HALF_OPEN = [b"", b"GET", START, START + b"\r\nX-Rest: "]
DEPTHS = [900, 5_000, 100_000]


@dataclass(frozen=True)
class Served:
    """A served API: its swarm, its port, and a client with the token."""

    swarm: SwarmRig
    port: int
    client: httpx2.AsyncClient

    async def connect(self, content: bytes) -> SocketStream:
        stream = await anyio.connect_tcp("127.0.0.1", self.port)
        if content:
            await stream.send(content)
        return stream

    async def raw(self, content: bytes) -> tuple[int, str]:
        """Send bytes; return the status and code of the response, which has to be a problem."""
        async with await self.connect(content) as stream:
            text = await read_to_end(stream)
        head, _, body = text.partition("\r\n\r\n")
        return int(head.split()[1]), json.loads(body)["code"]


@pytest.fixture
async def served() -> AsyncGenerator[Served]:
    async def certs() -> dict[str, str]:
        return {}

    access = Access(TOKEN, GoogleTokens("https://swarm.example", frozenset({"*"}), certs))
    async with (
        open_test_swarm(session="s1") as swarm,
        serving(swarm, access) as port,
        httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=HEADERS, timeout=PATIENCE_SECONDS) as client,
    ):
        yield Served(swarm, port, client)


async def read_to_end(stream: SocketStream) -> str:
    content = bytearray()
    with contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError):
        while True:
            content += await stream.receive()
    return content.decode()


def problem(answer: httpx2.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    return answer.status_code, answer.json()["code"]


async def test_other_clients_are_answered_while_520_connections_are_half_open(served: Served) -> None:
    async with contextlib.AsyncExitStack() as stack:
        for number in range(520):
            await stack.enter_async_context(await served.connect(HALF_OPEN[number % len(HALF_OPEN)]))
        for _ in range(3):
            assert (await served.client.get("/v1/status")).status_code == 200


@pytest.mark.parametrize("sent", HALF_OPEN)
async def test_half_open_connection_is_closed_in_time(
    served: Served, sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fireswarm.api.connection.HEADER_SECONDS", 0.3)
    with anyio.fail_after(PATIENCE_SECONDS):
        assert await served.raw(sent) == (408, "request_timeout")


async def test_header_that_drips_in_after_a_response_is_cut_off(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fireswarm.api.connection.HEADER_SECONDS", 0.3)
    closed = (anyio.BrokenResourceError, anyio.EndOfStream)
    with anyio.fail_after(PATIENCE_SECONDS), contextlib.suppress(*closed):
        async with await served.connect(START + b"\r\n\r\n") as stream:
            assert b" 200 " in await stream.receive()
            while True:
                await stream.send(b"G")
                with anyio.move_on_after(0.05):
                    received = await stream.receive()
                    assert b" 408 " in received


@pytest.mark.parametrize("header", [b"", b"\r\nConnection: Upgrade\r\nUpgrade: h2c"])
async def test_a_client_that_sends_many_requests_ahead_is_disconnected(served: Served, header: bytes) -> None:
    request = START.replace(b"GET /v1/status", b"GET /v1/tasks") + header + b"\r\n\r\n"
    sent, ahead = 0, request * 1_000
    with anyio.fail_after(PATIENCE_SECONDS), contextlib.suppress(anyio.BrokenResourceError, anyio.EndOfStream):
        async with await served.connect(b"") as stream, anyio.create_task_group() as group:

            async def read() -> None:
                with contextlib.suppress(anyio.BrokenResourceError, anyio.EndOfStream, anyio.ClosedResourceError):
                    while True:
                        await stream.receive()
                group.cancel_scope.cancel()

            group.start_soon(read)
            while sent < 100 * MAX_AHEAD_BYTES:
                await stream.send(ahead)
                sent += len(ahead)
            raise AssertionError("the server takes requests without end")
    assert (await served.client.get("/v1/status")).status_code == 200


async def test_a_client_that_reads_nothing_of_an_answer_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fireswarm.api.connection.STALLED_SECONDS", 0.01)
    async with open_test_swarm(session="s1") as swarm, serving(swarm, Access(TOKEN)) as port:
        uri = await swarm.client.parts.blobs.put("s1/big", b"x" * 20_000_000)
        task = await swarm.submit("big", session="s1")
        held = await swarm.claim_one()
        await swarm.settle(held, done("short", artifacts=(Artifact(type="file", name="big", uri=uri),)))
        asked = START.replace(b"/v1/status", f"/v1/tasks/{task.task_id}/artifacts/big".encode()) + b"\r\n\r\n"

        async def is_closed() -> bool:
            found = psutil.Process().net_connections("tcp")
            return not any(each.laddr.port == port and each.status == "ESTABLISHED" for each in found)

        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(asked)
            await until(is_closed, seconds=PATIENCE_SECONDS, what="closing the connection")


STRICT = (
    START + b"\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    START + b"\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n",
    START.replace(b"HTTP/1.1", b"HTTP/1.0") + b"\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    START + b"\r\nContent-Length: 0\r\nContent-Length: 1\r\n\r\nx",
    START + b"\r\nContent-Length: +1\r\n\r\nx",
    START.replace(b"\r\n", b"\n") + b"\n\n",
    START.replace(b"HTTP/1.1\r\n", b"HTTP/1.1\n") + b"\r\n\r\n",
    START + b"\nX-Other: 1\r\n\r\n",
    START + b"\r\n\n",
    START + b"\r\nX-Other: 1\r\n folded\r\n\r\n",
    START + b"\r\nX-Other: 1\r\n\tfolded\r\n\r\n",
    START + b"\r\nX-Other : 1\r\n\r\n",
    START + b"\r\nX-Other: 1\r2\r\n\r\n",
    START + b"\r\nAuthorization: Bearer " + b"x" * 20 + b"\r\n\r\n",
    START + b"\r\n" + START.partition(b"\r\n")[2] + b"\r\n\r\n",
    START + b"\r\nContent-Type: application/json\r\nContent-Type: text/plain\r\n\r\n",
)


@pytest.mark.parametrize("head", STRICT)
async def test_head_that_proxies_read_otherwise_is_refused_and_the_connection_closed(
    served: Served, head: bytes
) -> None:
    assert await served.raw(head + START + b"\r\n\r\n") == (400, "bad_request")
    async with await served.connect(b"") as stream:
        with contextlib.suppress(anyio.BrokenResourceError):
            for at in range(len(head)):
                await stream.send(head[at : at + 1])
        text = await read_to_end(stream)
    assert text == "" or int(text.split()[1]) == 400


@pytest.mark.parametrize(
    ("trailer", "status"),
    [
        (b"\r\n", 201),
        (b"X-Check: 1\r\n\r\n", 201),
        (b"X-Check: 1\n\r\n", 400),
        (b"X-Check: 1\r\n more\r\n\r\n", 400),
    ],
)
async def test_chunked_bodies_are_read_with_strict_trailers(served: Served, trailer: bytes, status: int) -> None:
    head = START.replace(b"GET /v1/status", b"POST /v1/tasks") + b"\r\nContent-Type: application/json\r\n"
    body = b'{"objective": "x", "role": "executor"}'
    sent = head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n%s" % (len(body), body, trailer)
    async with await served.connect(sent) as stream:
        assert int((await stream.receive()).split()[1]) == status


async def test_event_streams_leave_room_for_other_requests(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "MAX_STREAMS_OF_CALLER", 3)
    ask = START.replace(b"/v1/status", b"/v1/events") + b"\r\n\r\n"
    async with contextlib.AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(await served.connect(ask)) for _ in range(3)]
        for stream in streams:
            assert b" 200 " in (await stream.receive()).partition(b"\r\n")[0]
        refused = await served.client.get("/v1/events")
        assert problem(refused) == (429, "too_many_streams")
        assert refused.headers["retry-after"]
        assert (await served.client.get("/v1/status")).status_code == 200
        await streams[0].aclose()
        with anyio.fail_after(PATIENCE_SECONDS):  # the server learns a moment later that a stream was closed
            while not await can_follow(served, ask):
                pass


async def can_follow(served: Served, ask: bytes) -> bool:
    async with await served.connect(ask) as stream:
        return b" 200 " in (await stream.receive()).partition(b"\r\n")[0]


def test_streams_and_waiting_connections_never_fill_the_server() -> None:
    assert session.MAX_STREAMS_OF_CALLER < session.MAX_STREAMS
    assert session.MAX_STREAMS + connection.MAX_WAITING < server.MAX_CONNECTIONS


async def test_body_that_does_not_come_ends_with_408(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fireswarm.api.middleware.BODY_SECONDS", 0.3)
    with anyio.fail_after(PATIENCE_SECONDS):
        head = START.replace(b"GET /v1/status", b"POST /v1/tasks") + b"\r\nContent-Length: 100\r\n\r\n{"
        assert await served.raw(head) == (408, "request_timeout")


async def test_a_request_cut_off_in_its_body_changes_nothing(served: Served) -> None:
    body = json.dumps({"objective": "half of it", "role": "scout"}).encode()
    head = START.replace(b"GET /v1/status", b"POST /v1/tasks") + b"\r\nContent-Type: application/json"
    async with await served.connect(head + b"\r\nContent-Length: 500\r\n\r\n" + body):
        assert (await served.client.get("/v1/tasks")).json()["items"] == []
    for _ in range(5):
        assert (await served.client.get("/v1/tasks")).json()["items"] == []


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("pair", [("[", "]"), ('{"a":', "}")])
@pytest.mark.parametrize("key", [{}, {"Idempotency-Key": "once"}])
async def test_deeply_nested_body_is_refused(served: Served, depth: int, pair: tuple[str, str], key: Any) -> None:
    value = pair[0] * depth + "1" + pair[1] * depth
    headers = {"Content-Type": "application/json", **key}
    for body in (value, f'{{"objective": "x", "role": "scout", "context": {{"a": {value}}}}}', pair[0] * depth):
        if len(body) > 500_000:
            body = body.replace('{"a":', '{"":')
        answer = await served.client.post("/v1/tasks", content=body, headers={**headers})
        assert problem(answer) in [(400, "bad_request"), (422, "invalid_request"), (422, "idempotency_key_reused")]
    assert (await served.client.get("/v1/tasks")).json()["items"] == []


def nested(depth: int) -> str:
    return base64.urlsafe_b64encode(b"[" * depth).decode().rstrip("=")


async def test_deeply_nested_headers_and_cursors_are_refused(served: Served) -> None:
    last = {"Last-Event-ID": nested(9_000)}
    assert problem(await served.client.get("/v1/events", headers=last)) == (422, "invalid_input")
    end_of_time = base64.urlsafe_b64encode(b'["9999-12-31T23:59:59-14:00","",{},0]').decode()
    answer = await served.client.get("/v1/events", headers={"Last-Event-ID": end_of_time})
    assert problem(answer) == (422, "invalid_input")
    assert problem(await served.client.get(f"/v1/tasks?cursor={nested(700)}")) == (422, "invalid_input")
    for token in (f"{nested(9_000)}.e30.e30", f"e30.{nested(9_000)}.e30"):
        answer = await served.client.get("/v1/status", headers={"Authorization": f"Bearer {token}"})
        assert problem(answer) == (401, "unauthorized")


@pytest.mark.parametrize(
    ("host", "refused"),
    [
        ("localhost:80@evil", (400, "bad_request")),
        ("[::1", (400, "bad_request")),
        ("[::1]evil.example", (400, "bad_request")),
        ("::1", (400, "bad_request")),
        ("localhost:", (400, "bad_request")),
        ("localhost:99999", (400, "bad_request")),
        ("localhost:8090:8090", (400, "bad_request")),
        ("localhost/evil", (400, "bad_request")),
        ("localhost, evil.example", (400, "bad_request")),
        ("127.0.0.1\r\nHost: evil.example", (400, "bad_request")),
        ("127.0.0.1.evil.com", (421, "misdirected_request")),
        ("localhost.", (421, "misdirected_request")),
        ("0x7f.1", (421, "misdirected_request")),
        ("0.0.0.0", (421, "misdirected_request")),
        ("[::ffff:127.0.0.1]", (421, "misdirected_request")),
    ],
)
async def test_foreign_and_malformed_hosts_are_refused(served: Served, host: str, refused: tuple[int, str]) -> None:
    with anyio.fail_after(PATIENCE_SECONDS):
        assert await served.raw(START.replace(b"localhost", host.encode()) + b"\r\n\r\n") == refused


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:8090", "[::1]", "[0:0:0:0:0:0:0:1]:80"])
async def test_hosts_that_name_loopback_are_allowed(served: Served, host: str) -> None:
    assert (await served.client.get("/v1/status", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    "given",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "multipart/form-data; boundary=x"},
        {"Content-Type": "application/jsonp"},
        {"Content-Type": "json"},
        {"Content-Type": "application/json; charset=utf-16"},
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
        {},
    ],
)
async def test_body_of_another_type_than_json_gets_415(served: Served, given: dict[str, str]) -> None:
    task = await served.swarm.submit()
    for path in ("/v1/tasks", f"/v1/tasks/{task.task_id}/cancel"):
        answer = await served.client.post(path, content=b'{"objective": "x", "role": "scout"}', headers=given)
        assert problem(answer) == (415, "unsupported_media_type")
        assert "application/json" in answer.text or "UTF-8" in answer.text or "Encoding" in answer.text
    assert [item["task_id"] for item in (await served.client.get("/v1/tasks")).json()["items"]] == [task.task_id]


@pytest.mark.parametrize(
    "kind", ["application/json", "Application/JSON; charset=UTF-8", "application/merge-patch+json"]
)
async def test_json_body_is_accepted_and_an_absent_body_needs_no_type(served: Served, kind: str) -> None:
    sent = {"objective": kind, "role": "scout"}
    answer = await served.client.post("/v1/tasks", content=json.dumps(sent), headers={"Content-Type": kind})
    assert answer.status_code == 201
    assert (await served.client.post(f"/v1/tasks/{answer.json()['task_id']}/cancel")).status_code == 200


async def test_unknown_query_parameters_are_refused_with_the_known_ones(served: Served) -> None:
    answer = await served.client.get("/v1/tasks?statsu=done&limit=5")
    assert problem(answer) == (422, "invalid_request")
    known = "cursor, limit, reason, role, since, status, text, until"
    assert answer.json()["errors"] == [{"where": "query.statsu", "message": "unknown query parameter"}]
    assert answer.json()["detail"].endswith("Query parameters of this endpoint: " + known)
    for path in (
        "/v1/status?x=1",
        "/v1/capabilities?limit=5",
        "/v1/events?tasks=a",
        "/v1/tasks?status=done&status=queued",
    ):
        assert problem(await served.client.get(path)) == (422, "invalid_request"), path
    sent = {"objective": "x", "role": "scout"}
    assert problem(await served.client.post("/v1/tasks?dry_run=true", json=sent)) == (422, "invalid_request")
    assert (await served.client.get("/v1/tasks?status=queued&limit=5")).json()["items"] == []


async def test_answer_counts_for_the_question_with_its_id_only(served: Served) -> None:
    task = await served.swarm.submit()
    path = f"/v1/tasks/{task.task_id}"
    schema = {"enum": ["yes", "no"]}
    asked: list[Any] = []
    for described in ("Delete A?", "Delete B?"):
        question = Question(name="confirm", description=described, allowed=schema)
        waiting = Waiting(StatusReason.INPUT_REQUIRED, described, (question,))
        await served.swarm.settle(await served.swarm.claim_one(), waiting)
        [shown] = (await served.client.get(path)).json()["questions"]
        assert (shown["description"], shown["choices"], shown["allowed"]) == (described, ["yes", "no"], schema)
        asked.append(shown["id"])
        if described == "Delete A?":
            sent = {"answers": {shown["id"]: "yes"}}
            assert (await served.client.post(f"{path}/answer", json=sent)).status_code == 200
            assert problem(await served.client.post(f"{path}/answer", json=sent)) == (409, "stale_answer")
    assert len(set(asked)) == 2
    late = await served.client.post(f"{path}/answer", json={"answers": {asked[0]: "yes"}})
    assert problem(late) == (409, "stale_answer")
    assert f"question {asked[0]}" in late.json()["detail"] and f"{asked[1]} (confirm)" in late.json()["detail"]
    by_name = await served.client.post(f"{path}/answer", json={"answers": {"confirm": "yes"}})
    assert problem(by_name) == (422, "invalid_input") and f"{asked[1]} (confirm)" in by_name.json()["detail"]
    other = await served.client.post(f"{path}/answer", json={"answers": {asked[1]: "perhaps"}})
    assert problem(other) == (422, "invalid_input")
    done = await served.client.post(f"{path}/answer", json={"answers": {asked[1]: "no"}})
    assert done.status_code == 200 and done.json()["answers"] == {"confirm": "no"}
