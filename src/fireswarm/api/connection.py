"""One HTTP connection: it has a few seconds to send a request, and only a few connections may wait at once.

A connection without a complete request header costs the server only a socket, so a client without a token can open
many. Connections that wait too long are closed; if too many wait, the oldest is closed.

h11 accepts heads that proxies read in another way: lines that end with a bare line feed, folded lines, and a length
beside an encoding. Such requests are refused, since a proxy could take the rest of one for the next request.
"""

from __future__ import annotations

import asyncio
import re
from http import HTTPStatus
from typing import Any, cast

import h11
from h11._receivebuffer import ReceiveBuffer  # pyright: ignore[reportPrivateUsage] - where h11 takes lines as they come
from h11._state import MIGHT_SWITCH_PROTOCOL  # pyright: ignore[reportPrivateUsage] - not exported
from uvicorn.protocols.http.h11_impl import H11Protocol

from fireswarm.api.problems import Refusal

HEADER_SECONDS = 5.0
"""Time limit for a complete request header, from the connection's start or the first byte after a response."""

STALLED_SECONDS = 30.0
"""Time for which a client may read nothing of an answer that is under way."""

MAX_AHEAD_BYTES = 65_536
"""Maximum size of further requests that are received while one is answered: uvicorn reads on as soon as it can."""

MAX_WAITING = 200
"""Maximum number of connections without a request in progress.

Must be smaller than the server's MAX_CONNECTIONS, so that waiting connections cannot block active ones.
"""


_WHOLE = (h11.DONE, MIGHT_SWITCH_PROTOCOL)
"""States of a client whose request is received as a whole: what it sends further is kept until it is answered."""

_BARE_LINE_FEED = re.compile(rb"(?<!\r)\n")
_FOLDED = re.compile(rb"\n[ \t]")
_HEAD_END = re.compile(rb"\n\r?\n")


class StrictBuffer(ReceiveBuffer):
    """Received bytes. Lines of a head, or of trailers, are read as RFC 9112 writes them."""

    def maybe_extract_lines(self) -> list[bytearray] | None:
        """Return the lines up to the first blank one, None before it came. Raises LocalProtocolError."""
        end = _HEAD_END.search(self._data, self._multiple_lines_search)
        stop = len(self._data) if end is None else end.end()
        if not self._data.startswith(b"\r\n"):
            for pattern in (_BARE_LINE_FEED, _FOLDED):
                if pattern.search(self._data, max(0, self._multiple_lines_search - 1), stop):
                    raise h11.LocalProtocolError("a bare line feed or a folded line in the head")
        lines = super().maybe_extract_lines()
        names = {bytes(line.partition(b":")[0].strip().lower()) for line in (lines or ())[1:]}
        if b"transfer-encoding" in names and (b"content-length" in names or (lines or (b"",))[0].endswith(b"1.0")):
            raise h11.LocalProtocolError("the length of the body is given in two ways")
        return lines


class BoundedConnection(H11Protocol):
    """An HTTP connection with a time limit for its next request header. Errors of the protocol become problems."""

    def __init__(self, *args: Any, **more: Any) -> None:
        """Pass all arguments to uvicorn's protocol."""
        super().__init__(*args, **more)
        self._received = cast("Any", self.conn)._receive_buffer = StrictBuffer()
        self._stalled: asyncio.TimerHandle | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._since = self.loop.time()

    @property
    def waits(self) -> bool:
        """True if the connection is open and has no request in progress."""
        cycle = cast("Any", self.cycle)
        return (cycle is None or cycle.response_complete) and not self.transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the time limit. Closes the connection that waits longest if too many wait."""
        super().connection_made(cast("asyncio.Transport", transport))
        self._start_limit()
        waiting = [item for item in self.connections if isinstance(item, BoundedConnection) and item.waits]
        if len(waiting) > MAX_WAITING:
            min(waiting, key=lambda item: item._since).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the time limits."""
        self._stop_limit()
        self.resume_writing()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Stop writing to a client that does not read, and close its connection unless it reads on soon."""
        super().pause_writing()
        self._stalled = self._stalled or self.loop.call_later(STALLED_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Write on: the client reads."""
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def data_received(self, data: bytes) -> None:
        """Receive bytes; a complete header ends the time limit."""
        super().data_received(data)
        if self.conn.their_state in _WHOLE and len(self._received) > MAX_AHEAD_BYTES:
            self.transport.abort()
            return
        if not self.waits:
            self._stop_limit()
        elif self._deadline is None:
            self._start_limit()

    def on_response_complete(self) -> None:
        """Record the time, which decides which idle connection is closed first."""
        self._since = self.loop.time()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Respond to a malformed request."""
        self._refuse(Refusal(HTTPStatus.BAD_REQUEST, "bad_request", "the request is not valid HTTP/1.1"))

    def _start_limit(self) -> None:
        self._since = self.loop.time()
        self._deadline = self.loop.call_later(HEADER_SECONDS, self._time_out)

    def _stop_limit(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _time_out(self) -> None:
        self._deadline = None
        if not self.waits:
            return
        detail = f"no complete request header within {HEADER_SECONDS:g} s: send the request again"
        self._refuse(Refusal(HTTPStatus.REQUEST_TIMEOUT, "request_timeout", detail, retryable=True))

    def _refuse(self, refusal: Refusal) -> None:
        """Send *refusal* if no response has begun, and close the connection."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            response = refusal.response()
            headers = [*response.raw_headers, (b"connection", b"close")]
            events = (
                h11.Response(status_code=refusal.status, headers=headers),
                h11.Data(data=bytes(response.body)),
                h11.EndOfMessage(),
            )
            self.transport.write(b"".join(self.conn.send(event) or b"" for event in events))
        self.transport.close()
