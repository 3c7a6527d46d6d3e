"""Preview of a write or a deletion in the session file system."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fireswarm.capabilities.session_files.paths import below, normal
from fireswarm.capabilities.session_files.storage import Shelf
from fireswarm.capabilities.text_diff import text_diff
from fireswarm.errors import InvalidInput

MAX_LISTED = 100


async def preview_write(shelf: Shelf, given: Mapping[str, Any]) -> str:
    """Return the change of the file as a diff; "" for an input that the tool refuses."""
    try:
        path = normal(str(given.get("path", "")))
    except InvalidInput:
        return ""
    [stored] = await shelf.get_many([path])
    before, content = stored.content if stored is not None else None, str(given.get("content", ""))
    if given.get("encoding") == "base64":
        return text_diff(path, before, content.encode())
    return text_diff(path, before, content)


async def preview_deletion(shelf: Shelf, given: Mapping[str, Any]) -> str:
    """Return the names of the files that would be deleted; "" for an input that the tool refuses."""
    try:
        path = normal(str(given.get("path", "")))
    except InvalidInput:
        return ""
    found = [stored.path for stored in await shelf.get_many([path]) if stored is not None]
    if given.get("recursive"):
        found += [stored.path for stored in await shelf.between(*below(path), MAX_LISTED + 1)]
    more = ["... and more"] if len(found) > MAX_LISTED else []
    return "\n".join([*(f"- {name}" for name in found[:MAX_LISTED]), *more])
