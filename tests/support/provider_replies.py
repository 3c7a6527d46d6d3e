"""Replies of a local model server, as each provider writes them: whole, and as a stream."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.cloud_accounts import chunk_frame, exception_frame
from tests.support.provider_openai import chunks, completion
from tests.support.provider_rules import signature_of

WORDS = 24
"""Characters in one piece of a streamed answer."""

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
    cache_write_tokens: int = 0
    thinking_tokens: int = 0
    tool: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    thinking: str = ""
    details: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it came. ``answers`` counts the model's answers already in the conversation.

    ``provider`` names the form of the messages, ``platform`` the provider as the settings name it.
    """

    provider: str
    kind: str
    model: str
    body: dict[str, Any]
    raw: bytes
    headers: dict[str, str]
    answers: int
    platform: str = ""
    target: str = ""


def bytes_of(request: Received, reply: Reply, streams: bool) -> bytes:
    """The whole HTTP response."""
    bedrock = request.platform == "anthropic-bedrock"
    kind = "application/json"
    if streams:
        kind = "application/vnd.amazon.eventstream" if bedrock else "text/event-stream"
    if reply.status != 200:
        told = error_body(request.platform, reply.status, reply.message, reply.details)
        return http(reply.status, told, reply.headers)
    if reply.fault == "shape":
        content = reply.text.encode()
        if bedrock and streams:
            content = b"".join(map(chunk_frame, _recorded_events(reply.text))) or content
        return _head(200, len(content), "text/html" if reply.text.startswith("<") else kind) + content
    if not streams and reply.fault == "malformed":
        return http(200, b'{"id": "x", "content": [')
    content = _streamed(request, reply) if streams else _whole(request, reply)
    if reply.fault == "cut":
        return _head(200, len(content) + 500, kind) + content[: len(content) // 2]
    return _head(200, len(content), kind) + content


def _streamed(request: Received, reply: Reply) -> bytes:
    pieces = _stream(request, reply)
    bedrock = request.platform == "anthropic-bedrock"
    if reply.fault == "malformed":
        pieces[1] = b'{"type": "content_' if bedrock else b'event: content_block_start\ndata: {"type": "content_\n\n'
    wrapped = list(map(chunk_frame, pieces)) if bedrock else pieces
    if reply.fault == "error_event":
        wrapped = [*wrapped[:1], _error_event(request.platform, 529, reply.message)]
    return b"".join(wrapped)


def _recorded_events(text: str) -> list[bytes]:
    return [line.removeprefix("data:").strip().encode() for line in text.splitlines() if line.startswith("data:")]


def _whole(request: Received, reply: Reply) -> bytes:
    if request.provider == "gemini":
        return json.dumps(_gemini_piece(request, reply, _parts(reply), last=True)).encode()
    if request.provider == "openai":
        return json.dumps(completion(request.model, request.answers, reply)).encode()
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
        "stop_reason": _stop_of(reply) if stop else None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": reply.input_tokens - reply.cached_tokens - reply.cache_write_tokens,
            "output_tokens": reply.output_tokens,
            "cache_read_input_tokens": reply.cached_tokens,
            "cache_creation_input_tokens": reply.cache_write_tokens,
            "output_tokens_details": {"thinking_tokens": reply.thinking_tokens},
        },
    }


def _stop_of(reply: Reply) -> str:
    return "tool_use" if reply.stop == "end" and (reply.tool or reply.calls) else ANTHROPIC_STOPS[reply.stop]


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
    if request.provider == "openai":
        events = chunks(request.model, request.answers, reply, _pieces)
        return [f"data: {json.dumps(event)}\n\n".encode() for event in events] + [b"data: [DONE]\n\n"]
    usage = _message(request, reply, [])["usage"]
    called = reply.tool or (request.body.get("tool_choice") or {}).get("name")
    blocks = _blocks(request, reply) or [{"type": "text", "text": ""}]
    if called:
        blocks = [{"type": "tool_use", "id": "toolu_1", "name": called, "input": json.loads(reply.text)}]
    stop = _stop_of(reply)
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": _message(request, reply, [], stop=False)},
        *(event for number, block in enumerate(blocks) for event in _block_events(number, block)),
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]
    if request.platform == "anthropic-bedrock":
        return [json.dumps(event).encode() for event in events]
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


def counted(request: Received) -> bytes:
    """The answer to a request to count tokens."""
    tokens = len(request.raw) // 4
    return json.dumps({"input_tokens": tokens} if request.provider == "anthropic" else {"totalTokens": tokens}).encode()


def _error_event(platform: str, status: int, message: str) -> bytes:
    if platform == "anthropic-bedrock":
        return exception_frame("throttlingException", message)
    content = error_body(platform, status, message)
    return b"event: error\ndata: " + content + b"\n\n" if "anthropic" in platform else b"data: " + content + b"\r\n\r\n"


def error_body(platform: str, status: int, message: str, details: Sequence[dict[str, Any]] = ()) -> bytes:
    """An error in the form of the platform."""
    if "gemini" in platform:
        told = {"code": status, "message": message, "status": "UNAVAILABLE", "details": list(details)}
        return json.dumps({"error": told}).encode()
    if platform == "openai":
        return json.dumps({"error": {"message": message, "type": "error", "param": None, "code": None}}).encode()
    if platform == "anthropic-bedrock":
        return json.dumps({"message": message}).encode()
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


def http(status: int, content: bytes, headers: Sequence[tuple[str, str]] = (), kind: str = "application/json") -> bytes:
    """A whole HTTP response."""
    return _head(status, len(content), kind, headers) + content
