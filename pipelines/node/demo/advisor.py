"""A scripted advisor: answers the questions of the node pipeline for the source in this folder, without a network.

Its first translation gets one method wrong, so that the demo also shows a failing test, a bounded fix and a second
validation. ``model.provider: scripted`` and ``model.script: advisor.py:answer`` use it.
"""

from __future__ import annotations

import re
from typing import Any

OPERATIONS = '''"""What each operation sends, and what it makes of the answer."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from .transport import Send


def link_add(parameters: dict[str, Any], send: Send) -> Any:
    """Put a link on a shelf."""
    tags = [tag.strip() for tag in str(parameters.get("tags") or "").split(",")]
    body = {
        "url": parameters["url"],
        "tags": [tag for tag in tags if tag],
        "visibility": parameters.get("visibility"),
    }
    return send("POST", "/links", body=body)


def link_get(parameters: dict[str, Any], send: Send) -> Any:
    """Read one link."""
    return send("GET", f"/links/{quote(str(parameters['linkId']), safe='')}")


def link_get_all(parameters: dict[str, Any], send: Send) -> Any:
    """List links, newest first."""
    return send("GET", "/links", query={"limit": parameters.get("limit"), "tags": parameters.get("tags")})


def link_remove(parameters: dict[str, Any], send: Send) -> Any:
    """Take a link off its shelf."""
    return send("REMOVE", f"/links/{quote(str(parameters['linkId']), safe='')}")


def shelf_create(parameters: dict[str, Any], send: Send) -> Any:
    """Put up a shelf."""
    return send("POST", "/shelves", body={"title": parameters["title"]})
'''
"""Correct except for one method: the source says DELETE."""


def answer(request: Any) -> dict[str, Any]:
    """Return the advisor's answer to the last question of *request*."""
    text = request.messages[0].text
    if '"REMOVE"' in text:
        return {"patch": _patch(text), "explanation": "the source deletes: the method is DELETE"}
    found = re.search(r"Scope: (\S+operations\.py)", text)
    if found is None:
        raise ValueError("this advisor knows only the source in its folder")
    return {"files": [{"path": found[1], "content": OPERATIONS}], "notes": "translated branch by branch"}


def _patch(text: str) -> str:
    path = re.findall(r"# project/(nodes/\w+/operations\.py)", text)[0]
    line = "    return send(\"REMOVE\", f\"/links/{quote(str(parameters['linkId']), safe='')}\")"
    number = OPERATIONS.splitlines().index(line) + 1
    around = OPERATIONS.splitlines()[number - 2 : number + 1]
    mended = line.replace("REMOVE", "DELETE")
    return "\n".join(
        [
            f"--- a/{path}",
            f"+++ b/{path}",
            f"@@ -{number - 1},3 +{number - 1},3 @@",
            f" {around[0]}",
            f"-{line}",
            f"+{mended}",
            f" {around[2]}",
            "",
        ]
    )
