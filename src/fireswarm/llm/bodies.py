"""The body of a request as it is kept for debugging. Pure."""

from __future__ import annotations

import json
from typing import Any

from fireswarm.contracts.llm.chat import ChatRequest


def body_of(request: ChatRequest) -> str:
    """Return a request as indented JSON, the same for every provider."""
    messages: list[dict[str, Any]] = [
        {"role": message.role, "text": message.text}
        | ({"outputs": [output.model_dump(mode="json") for output in message.outputs]} if message.outputs else {})
        | ({"content": message.content} if message.content else {})
        for message in request.messages
    ]
    body: dict[str, Any] = {
        "system": request.system,
        "messages": messages,
        "max_tokens": request.max_tokens,
        "native": request.native,
    }
    body["tools"] = [tool.name for tool in request.tools]
    return json.dumps(body, indent=2, ensure_ascii=False)
