"""Count tokens as a provider with a cache of beginnings does: at full price, read from it, written to it. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from fireswarm.llm.tokens import IMAGE_TOKENS, estimate_tokens

LEAST_CACHED = 1_024
"""A shorter beginning of a request is not kept."""

LOOKED_BACK = 20
"""Number of blocks before a marker at which a kept beginning is found, as Anthropic documents it."""

MARKER = "cache_control"

MEDIA = ("image", "document")


@dataclass(frozen=True, slots=True)
class Counted:
    """The tokens of one request. ``ends`` are the beginnings that are kept when it has been answered."""

    full: int
    read: int
    written: int
    ends: tuple[str, ...]


@dataclass(slots=True)
class PromptCache:
    """The beginnings of answered requests, by their digest.

    As at a provider, requests that run at the same time do not share theirs.
    """

    _kept: set[str] = field(default_factory=set[str])

    def count(self, body: dict[str, Any]) -> Counted:
        """Count a request of Anthropic's form."""
        digest, tokens, ends, marked = hashlib.sha256(), 0, list[tuple[str, int]](), list[int]()
        for number, (text, size, has_marker) in enumerate(_blocks(body)):
            digest.update(text.encode())
            tokens += size
            ends.append((digest.hexdigest(), tokens))
            if has_marker and tokens >= LEAST_CACHED:
                marked.append(number)
        read = max((self._found(ends[max(0, each - LOOKED_BACK) : each + 1]) for each in marked), default=0)
        last = ends[marked[-1]][1] if marked else 0
        return Counted(tokens - last, read, last - read, tuple(ends[each][0] for each in marked))

    def keep(self, counted: Counted) -> None:
        """Keep the beginnings of a request that was answered."""
        self._kept.update(counted.ends)

    def _found(self, ends: Sequence[tuple[str, int]]) -> int:
        return max((tokens for digest, tokens in ends if digest in self._kept), default=0)


def _blocks(body: dict[str, Any]) -> Iterator[tuple[str, int, bool]]:
    """Yield text, tokens, and if there is a marker, of each block in the order of the cache."""
    for tool in body.get("tools") or ():
        yield _block("tool", tool)
    system = body.get("system") or ()
    for block in [{"type": "text", "text": system}] if isinstance(system, str) else system:
        yield _block("system", block)
    for message in body["messages"]:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            yield _block(message["role"], block)


def _block(place: str, block: dict[str, Any]) -> tuple[str, int, bool]:
    plain = {name: value for name, value in block.items() if name != MARKER}
    text = json.dumps(plain, ensure_ascii=False, sort_keys=True)
    inner = plain.get("content")
    pictures = [part for part in (plain, *(inner if isinstance(inner, list) else ())) if part.get("type") in MEDIA]
    size = estimate_tokens(text) + sum(IMAGE_TOKENS - estimate_tokens(part["source"]["data"]) for part in pictures)
    return f"{place}{text}", size, MARKER in block
