"""Build the FastAPI application: routes, error responses, redaction of responses, and the request gate."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from fastapi import Depends, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from starlette.types import ASGIApp

from fireswarm.api import problems
from fireswarm.api.auth import Access
from fireswarm.api.idempotency import MAX_KEY_CHARS, METHODS, Once
from fireswarm.api.middleware import LOOPBACK_HOSTS, MAX_BODY_BYTES, Gate
from fireswarm.api.models.base import Problem
from fireswarm.api.reading.revalidation import LEFT_ALONE, Revalidation
from fireswarm.api.reference import page
from fireswarm.api.request_rules import check_request
from fireswarm.api.routes import ROUTERS
from fireswarm.api.session import ApiSession
from fireswarm.redaction import Redactor
from fireswarm.settings.packaged import __version__

OPENAPI_PATH = "/openapi.json"
DESCRIPTION = """\
API of one session of a fireswarm swarm. Errors are RFC 9457 problems. Lists are paged: pass `next_cursor` as `cursor`.
Requests that change something may carry an `Idempotency-Key`: repeating the request returns the first response."""

PROBLEM: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "A problem",
        "content": {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
}
KEY_PARAMETER: Mapping[str, Any] = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "random key, such as a UUID, kept for a day; reusing it for a different request is rejected",
    "schema": {"type": "string", "minLength": 1, "maxLength": MAX_KEY_CHARS, "pattern": "^[!-~]+$"},
}

TAG_PARAMETER: Mapping[str, Any] = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "description": "ETags of the versions you have, or `*`: 304 without a body if the current one is among them",
    "schema": {"type": "string"},
}
NOT_MODIFIED: Mapping[str, Any] = {"description": "`If-None-Match` names the current version"}


def make_application(service: ApiSession) -> FastAPI:
    """Return the application without the request gate, for callers with their own authentication."""
    app = FastAPI(
        title="fireswarm",
        version=__version__,
        description=DESCRIPTION,
        openapi_url=OPENAPI_PATH,
        docs_url=None,
        redoc_url=None,
        default_response_class=_clean_json(service.redactor),
        responses=PROBLEM,
        dependencies=[Depends(check_request)],
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.add_middleware(Revalidation)
    app.state.session = service
    app.state.json_response = app.router.default_response_class
    app.state.query_parameters = {}  # filled by check_request
    for router in ROUTERS:
        app.include_router(router)
    app.include_router(page.router)
    problems.install(app, service.redactor)
    app.openapi = lambda: _openapi(app)
    return app


def protected_application(
    service: ApiSession,
    access: Access,
    *,
    hosts: Collection[str] | None = LOOPBACK_HOSTS,
    max_body_bytes: int = MAX_BODY_BYTES,
) -> ASGIApp:
    """Return the application as served: behind the request gate, with idempotency keys."""
    once = Once(make_application(service), service.swarm, service.redactor)
    return Gate(once, access, service.redactor, hosts, max_body_bytes)


def _clean_json(redactor: Redactor) -> type[JSONResponse]:
    class CleanJSON(JSONResponse):
        """Response with secrets redacted. Numbers that JSON cannot represent become null."""

        def render(self, content: Any) -> bytes:
            cleaned = redactor.value(content)
            try:
                return super().render(cleaned)
            except ValueError:
                return super().render(json.loads(json.dumps(cleaned), parse_constant=lambda _: None))

    return CleanJSON


def _openapi(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema:
        return app.openapi_schema
    document = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes, tags=None
    )
    schemas = document["components"]["schemas"]
    problem = Problem.model_json_schema(mode="serialization", ref_template="#/components/schemas/{model}")
    schemas |= problem.pop("$defs", {}) | {"Problem": problem}
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            operation["responses"].pop("422", None)  # FastAPI's own; "default" describes our problems
            if method.upper() in METHODS:
                operation.setdefault("parameters", []).append(dict(KEY_PARAMETER))
            elif path not in LEFT_ALONE:
                operation.setdefault("parameters", []).append(dict(TAG_PARAMETER))
                operation["responses"]["304"] = dict(NOT_MODIFIED)
    document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"token": []}]
    app.openapi_schema = document
    return document
