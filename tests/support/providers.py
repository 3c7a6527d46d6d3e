"""A local server that speaks Anthropic Messages and Gemini generateContent, streaming too, and can misbehave.

It checks what it receives as the providers document it, and answers 400 with the reason: a request that the
real API would refuse fails here as well.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import re
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fireswarm.contracts.llm.decision import ActionType
from tests.support.provider_rules import anthropic_fault, gemini_fault, signature_of

WORDS = 24
"""Characters in one piece of a streamed answer."""

GEMINI_PATH = re.compile(r"^/v1beta/models/([^/:]+):(generateContent|streamGenerateContent|countTokens)$")
REASONS = {401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests", 500: "Internal Server Error"}
ANTHROPIC_STOPS = {"end": "end_turn", "max_tokens": "max_tokens", "refusal": "refusal"}
GEMINI_STOPS = {"end": "STOP", "max_tokens": "MAX_TOKENS", "refusal": "SAFETY"}


@dataclass(frozen=True, slots=True)
class Reply:
    """What is answered; ``status`` other than 200 is an error, with ``message``, and for Gemini ``details``.

    ``fault``: ``slow`` first byte, ``cut`` in the middle, ``malformed`` JSON, connection ``reset``, ``error_event``
    in a stream that began with 200, and ``shape``: JSON that is no answer, or with ``text`` a page of HTML.
    With ``tool``, the text is the input of a call of that tool (Anthropic only). ``calls`` are calls of tools after the
    text, by name and input; ``thinking`` is a signed thought before it.
    """

    text: str = ""
    stop: str = "end"
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    fault: str = ""
    message: str = "as told"
    input_tokens: int = 100
    output_tokens: int = 20
    cached_tokens: int = 0
    thinking_tokens: int = 0
    tool: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    thinking: str = ""
    details: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it came. ``answers`` counts the model's answers already in the conversation."""

    provider: str
    kind: str
    model: str
    body: dict[str, Any]
    raw: bytes
    headers: dict[str, str]
    answers: int


Script = Callable[[Received], Reply]


def in_order(*replies: Reply) -> Script:
    """The first request gets the first reply, and so on, whatever was asked; the last one stays."""
    left = list(replies)
    return lambda _request: left.pop(0) if len(left) > 1 else left[0]


@dataclass(slots=True)
class FakeProviders:
    """Answers by a script: a function of the request, or replies by how many answers there were.

    ``release`` lets a slow answer go on.
    """

    script: Script | Sequence[Reply]
    received: list[Received] = field(default_factory=list)
    release: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""

    @property
    def calls(self) -> list[Received]:
        """Requests for an answer; counting tokens is not one."""
        return [request for request in self.received if request.kind == "generate"]

    @contextlib.asynccontextmanager
    async def serving(self, port: int = 0) -> AsyncGenerator[FakeProviders]:
        """Serve on loopback."""
        connections: set[asyncio.StreamWriter] = set()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connections.add(writer)
            try:
                while await self._exchange(reader, writer):
                    pass
            except (ConnectionError, asyncio.IncompleteReadError):
                pass
            finally:
                connections.discard(writer)
                writer.close()

        server = await asyncio.start_server(connected, "127.0.0.1", port)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            self.release.set()
            server.close()
            for writer in list(connections):
                writer.close()
            await server.wait_closed()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        path = lines[0].split(" ")[1]
        headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)
        }
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        request, fault = self._read(path, headers, raw)
        if fault or request is None:
            writer.write(_http(400, _error(path, 400, fault)))
            await writer.drain()
            return True
        self.received.append(request)
        if request.kind == "count":
            writer.write(_http(200, _counted(request)))
            await writer.drain()
            return True
        return await self._reply(request, "stream" in path.lower() or bool(request.body.get("stream")), writer)

    async def _reply(self, request: Received, streams: bool, writer: asyncio.StreamWriter) -> bool:
        reply = self.script(request) if callable(self.script) else self.script[request.answers]
        if reply.fault == "slow":
            await self.release.wait()
        if reply.fault == "reset":
            writer.transport.abort()
            return False
        writer.write(_bytes_of(request, reply, streams))
        await writer.drain()
        return reply.fault != "cut"

    def _read(self, path: str, headers: dict[str, str], raw: bytes) -> tuple[Received | None, str]:
        try:
            body: dict[str, Any] = json.loads(raw)
        except ValueError:
            return None, "the body is not JSON"
        path = path.partition("?")[0]
        if path in ("/v1/messages", "/v1/messages/count_tokens"):
            kind = "count" if path.endswith("count_tokens") else "generate"
            fault = anthropic_fault(body, headers, kind)
            return _received("anthropic", kind, body.get("model", ""), body, raw, headers), fault
        if found := GEMINI_PATH.match(path):
            kind = "count" if found[2] == "countTokens" else "generate"
            return _received("gemini", kind, found[1], body, raw, headers), gemini_fault(body, headers)
        return None, f"there is no {path}"


def decision(kind: ActionType | str = ActionType.FINISH, skill: str = "", why: str = "as told", **params: str) -> str:
    """The text of a decision with one action."""
    action = {"type": str(kind), "params": params, "expected_output": ""}
    return json.dumps(
        {
            "selected_skill": skill,
            "reasoning_summary": why,
            "required_disclosure_paths": [],
            "planned_actions": [action],
        }
    )


def _received(
    provider: str, kind: str, model: str, body: dict[str, Any], raw: bytes, headers: dict[str, str]
) -> Received:
    turns: list[dict[str, Any]] = body.get("messages") or body.get("contents") or []
    answers = sum(turn.get("role") in ("assistant", "model") for turn in turns)
    return Received(provider, kind, model, body, raw, headers, answers)


# ── answers ─────────────────────────────────────────────────────────────────────────────────────────────


def _bytes_of(request: Received, reply: Reply, streams: bool) -> bytes:
    kind = "text/event-stream" if streams else "application/json"
    if reply.status != 200:
        told = _error(request.provider, reply.status, reply.message, reply.details)
        return _http(reply.status, told, reply.headers)
    if reply.fault == "shape":
        content = reply.text.encode()
        return _head(200, len(content), "text/html" if reply.text.startswith("<") else kind) + content
    if not streams and reply.fault == "malformed":
        return _http(200, b'{"id": "x", "content": [')
    content = _streamed(request, reply) if streams else _whole(request, reply)
    if reply.fault == "cut":
        return _head(200, len(content) + 500, kind) + content[: len(content) // 2]
    return _head(200, len(content), kind) + content


def _streamed(request: Received, reply: Reply) -> bytes:
    pieces = _stream(request, reply)
    if reply.fault == "malformed":
        pieces[1] = b'event: content_block_start\ndata: {"type": "content_\n\n'
    if reply.fault == "error_event":
        pieces = [*pieces[:1], _error_event(request.provider, 529, reply.message)]
    return b"".join(pieces)


def _whole(request: Received, reply: Reply) -> bytes:
    if request.provider == "gemini":
        return json.dumps(_gemini_piece(request, reply, _parts(reply), last=True)).encode()
    return json.dumps(_message(request, reply, _blocks(request, reply))).encode()


def _blocks(request: Received, reply: Reply) -> list[dict[str, Any]]:
    """The answer as blocks of Anthropic's."""
    blocks: list[dict[str, Any]] = []
    if reply.thinking:
        blocks.append({"type": "thinking", "thinking": reply.thinking, "signature": signature_of(reply.thinking)})
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    return blocks + [
        {"type": "tool_use", "id": f"toolu_{request.answers}_{number}", "name": name, "input": given}
        for number, (name, given) in enumerate(reply.calls)
    ]


def _parts(reply: Reply) -> list[dict[str, Any]]:
    """The answer as parts of Gemini's. The first call is signed, as its models with thinking do."""
    parts: list[dict[str, Any]] = [{"text": reply.thinking, "thought": True}] if reply.thinking else []
    parts += [{"text": reply.text}] if reply.text else []
    for number, (name, given) in enumerate(reply.calls):
        signed = {"thoughtSignature": signature_of(name)} if reply.thinking and not number else {}
        parts.append({"functionCall": {"name": name, "args": given}, **signed})
    return parts


def _message(request: Received, reply: Reply, content: list[dict[str, Any]], stop: bool = True) -> dict[str, Any]:
    called = reply.tool or (request.body.get("tool_choice") or {}).get("name")
    if called and content:
        content = [
            {"type": "tool_use", "id": f"toolu_{request.answers}", "name": called, "input": json.loads(reply.text)}
        ]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": content,
        "stop_reason": ("tool_use" if reply.tool or reply.calls else ANTHROPIC_STOPS[reply.stop]) if stop else None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": reply.input_tokens - reply.cached_tokens,
            "output_tokens": reply.output_tokens,
            "cache_read_input_tokens": reply.cached_tokens,
            "cache_creation_input_tokens": 0,
            "output_tokens_details": {"thinking_tokens": reply.thinking_tokens},
        },
    }


def _gemini_piece(request: Received, reply: Reply, parts: list[dict[str, Any]], *, last: bool) -> dict[str, Any]:
    candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": parts}}
    if last:
        candidate["finishReason"] = GEMINI_STOPS[reply.stop]
    return {
        "candidates": [candidate],
        "modelVersion": request.model,
        "responseId": "msg_1",
        "usageMetadata": {
            "promptTokenCount": reply.input_tokens,
            "candidatesTokenCount": reply.output_tokens - reply.thinking_tokens,
            "thoughtsTokenCount": reply.thinking_tokens,
            "cachedContentTokenCount": reply.cached_tokens,
            "totalTokenCount": reply.input_tokens + reply.output_tokens,
        },
    }


def _pieces(text: str) -> list[str]:
    return [text[at : at + WORDS] for at in range(0, len(text), WORDS)] or [""]


def _stream(request: Received, reply: Reply) -> list[bytes]:
    if request.provider == "gemini":
        shown = [
            [{"text": piece}] if "text" in part and not part.get("thought") else [part]
            for part in _parts(reply)
            for piece in (_pieces(part["text"]) if "text" in part and not part.get("thought") else [""])
        ] or [[]]
        return [
            b"data: "
            + json.dumps(_gemini_piece(request, reply, each, last=number == len(shown))).encode()
            + b"\r\n\r\n"
            for number, each in enumerate(shown, 1)
        ]
    usage = _message(request, reply, [])["usage"]
    called = reply.tool or (request.body.get("tool_choice") or {}).get("name")
    blocks = _blocks(request, reply) or [{"type": "text", "text": ""}]
    if called:
        blocks = [{"type": "tool_use", "id": "toolu_1", "name": called, "input": json.loads(reply.text)}]
    stop = "tool_use" if reply.calls else ANTHROPIC_STOPS[reply.stop]
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": _message(request, reply, [], stop=False)},
        *(event for number, block in enumerate(blocks) for event in _block_events(number, block)),
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events]


def _block_events(index: int, block: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of one block in Anthropic's stream."""
    match block["type"]:
        case "tool_use":
            begin, text, kind, key = (
                {**block, "input": {}},
                json.dumps(block["input"]),
                "input_json_delta",
                "partial_json",
            )
        case "thinking":
            begin, text = {"type": "thinking", "thinking": "", "signature": ""}, block["thinking"]
            kind, key = "thinking_delta", "thinking"
        case _:
            begin, text, kind, key = {"type": "text", "text": ""}, block["text"], "text_delta", "text"
    deltas = [{"type": kind, key: piece} for piece in _pieces(text)]
    if block["type"] == "thinking":
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    return [
        {"type": "content_block_start", "index": index, "content_block": begin},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def _counted(request: Received) -> bytes:
    tokens = len(request.raw) // 4
    return json.dumps({"input_tokens": tokens} if request.provider == "anthropic" else {"totalTokens": tokens}).encode()


def _error_event(provider: str, status: int, message: str) -> bytes:
    content = _error(provider, status, message)
    return b"data: " + content + b"\r\n\r\n" if provider == "gemini" else b"event: error\ndata: " + content + b"\n\n"


def _error(provider: str, status: int, message: str, details: Sequence[dict[str, Any]] = ()) -> bytes:
    if "gemini" in provider or "v1beta" in provider:
        told = {"code": status, "message": message, "status": "UNAVAILABLE", "details": list(details)}
        return json.dumps({"error": told}).encode()
    kind = {429: "rate_limit_error", 529: "overloaded_error", 401: "authentication_error"}.get(status, "api_error")
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()


def _head(status: int, length: int, content_type: str, headers: Sequence[tuple[str, str]] = ()) -> bytes:
    lines = [
        f"HTTP/1.1 {status} {REASONS.get(status, 'OK' if status == 200 else 'Error')}",
        f"Content-Type: {content_type}",
        f"Content-Length: {length}",
        *(f"{name}: {value}" for name, value in headers),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _http(status: int, content: bytes, headers: Sequence[tuple[str, str]] = ()) -> bytes:
    return _head(status, len(content), "application/json", headers) + content


async def _main(turns: int) -> None:
    """Answer each conversation with tool calls, and finish it at its last turn."""

    def script(request: Received) -> Reply:
        number = request.answers
        over, given = number + 1 >= turns, json.dumps({"a": number, "b": 1})
        if request.body.get("tools"):
            return Reply("done") if over else Reply(calls=(("add", {"a": number, "b": 1}),))
        return Reply(decision(answer="done") if over else decision("call_tool", tool="add", input=given))

    async with FakeProviders(script).serving() as served:
        sys.stdout.write(served.url + "\n")
        sys.stdout.flush()
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=10)
    asyncio.run(_main(parser.parse_args().turns))
