"""Bytes that are not a request are refused as INVALID_ARGUMENT, and the server goes on."""

from __future__ import annotations

from typing import Any

import anyio.to_thread
import grpc
import pytest

from firelite.database import Database
from firelite.wire.methods import METHODS, Method
from firelite.wire.server import Server

pytestmark = pytest.mark.anyio

PREFIX = "/google.firestore.v1.Firestore/"
MALFORMED = (b"\xff", b"\x0a\xff\xff\xff\xff\x0f", b"\x08" * 11, b"\x0a\x02\xff\xfe", bytes(range(256)))


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.rpc)
async def test_malformed_request_is_an_invalid_argument(method: Method) -> None:
    async with Server(Database.open(None)) as server:
        codes = await anyio.to_thread.run_sync(send_all, server.endpoint, method)
    assert codes == [grpc.StatusCode.INVALID_ARGUMENT] * len(MALFORMED)


def send_all(endpoint: str, method: Method) -> list[Any]:
    """Send every malformed request, and return the codes of the answers."""
    with grpc.insecure_channel(endpoint) as channel:
        return [code_of(channel, method, content) for content in MALFORMED]


def code_of(channel: grpc.Channel, method: Method, content: bytes) -> Any:
    path = f"{PREFIX}{method.rpc}"
    try:
        if method.streams_requests:
            return list(channel.stream_stream(path)(iter([content]), timeout=120))
        if method.streams_responses:
            return list(channel.unary_stream(path)(content, timeout=120))
        return channel.unary_unary(path)(content, timeout=120)
    except grpc.RpcError as error:
        wide: Any = error
        return wide.code()
