"""Bytes that are not a request are refused as INVALID_ARGUMENT, and the server goes on."""

from __future__ import annotations

import grpc
import grpc.aio
import pytest

from fireswarm.firelite.database import Database
from fireswarm.firelite.wire.methods import METHODS, Method
from fireswarm.firelite.wire.server import Server

pytestmark = pytest.mark.anyio

PREFIX = "/google.firestore.v1.Firestore/"
MALFORMED = (b"\xff", b"\x0a\xff\xff\xff\xff\x0f", b"\x08" * 11, b"\x0a\x02\xff\xfe", bytes(range(256)))


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.rpc)
async def test_malformed_request_is_an_invalid_argument(method: Method) -> None:
    async with Server(Database.open(None)) as server, grpc.aio.insecure_channel(server.endpoint) as channel:
        for content in MALFORMED:
            path = f"{PREFIX}{method.rpc}"
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                if method.streams_requests:
                    call = channel.stream_stream(path)(iter([content]))
                    _ = [answer async for answer in call]
                elif method.streams_responses:
                    _ = [answer async for answer in channel.unary_stream(path)(content)]
                else:
                    await channel.unary_unary(path)(content)
            assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT, (content, refused.value.details())
