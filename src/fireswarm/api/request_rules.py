"""Rules for every request to a route: a JSON body, and only query parameters that the route has."""

from __future__ import annotations

from collections import Counter
from email.message import Message

from fastapi import Request
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from fireswarm.api.problems import Refusal, Refused
from fireswarm.contracts.limits import MAX_LABEL_CHARS, truncate
from fireswarm.redaction import Redactor

MAX_NAMED = 5
"""Maximum number of wrong query parameters that a problem names."""


async def check_request(request: Request) -> None:
    """Raise Refused for a body that is not JSON, and for unknown or repeated query parameters."""
    if reason := media_type_fault(request) if await request.body() else "":
        raise Refused(Refusal(415, "unsupported_media_type", reason, headers={"Accept": "application/json"}))
    known = _query_parameters(request)
    redactor: Redactor = request.app.state.session.redactor
    faults: list[dict[str, str]] = []
    for name, count in Counter(name for name, _ in request.query_params.multi_items()).items():
        reason = "unknown query parameter" if name not in known else "is given more than once" if count > 1 else ""
        if reason:
            where = truncate(redactor.clean(f"query.{name}"), MAX_LABEL_CHARS)
            faults.append({"where": where, "message": reason})
    if faults:
        named = "; ".join(f"{fault['where']}: {fault['message']}" for fault in faults[:MAX_NAMED])
        detail = f"invalid request: {named}. Query parameters of this endpoint: {', '.join(known) or 'none'}"
        raise Refused(Refusal(422, "invalid_request", detail, errors=faults))


def media_type_fault(request: Request) -> str:
    """Return why the headers declare a body other than JSON, or ""."""
    if encoding := request.headers.get("content-encoding", ""):
        return (
            f"Content-Encoding {truncate(encoding, MAX_LABEL_CHARS)} is not supported: send the body without encoding"
        )
    header = Message()
    header["content-type"] = request.headers.get("content-type", "")
    kind = header.get_content_type() if request.headers.get("content-type") else "missing"
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        return f"send the body as JSON with `Content-Type: application/json`; this one is {kind}"
    charset = str(header.get_param("charset") or "utf-8").lower()
    if charset not in ("utf-8", "utf8", "us-ascii"):
        return f"send the body in UTF-8; this one is {truncate(charset, MAX_LABEL_CHARS)}"
    return ""


def _query_parameters(request: Request) -> list[str]:
    """Return the names of the route's query parameters."""
    route: APIRoute = request.scope["route"]
    known: dict[tuple[str, str], list[str]] = request.app.state.query_parameters
    key = (route.path_format, request.method.lower())
    if key not in known:
        known[key] = _parameters_in_openapi(route, request.method.lower())
    return known[key]


def _parameters_in_openapi(route: APIRoute, method: str) -> list[str]:
    """Return the OpenAPI entry of one route: the full document takes 0.3 s and blocks the event loop."""
    if not route.include_in_schema:
        return []
    document = get_openapi(title="", version="", routes=[route])
    parameters = document["paths"][route.path_format][method].get("parameters", ())
    return sorted(item["name"] for item in parameters if item["in"] == "query")
