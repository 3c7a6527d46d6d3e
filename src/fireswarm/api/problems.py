"""Error responses: one table maps our errors to HTTP statuses, and every response is an RFC 9457 problem."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from fireswarm import errors
from fireswarm.contracts.base import describe_fault
from fireswarm.contracts.limits import MAX_DETAIL_CHARS, truncate
from fireswarm.redaction import Redactor

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_SECONDS = 2

logger = logging.getLogger(__name__)

STATUS: dict[type[errors.FireswarmError], int] = {
    errors.ConfigError: 500,
    errors.InvalidInput: 422,
    errors.NewerDocument: 409,
    errors.GraphInvalid: 422,
    errors.PolicyRefused: 422,
    errors.StaleAnswer: 409,
    errors.HostRefused: 422,
    errors.ResumeRefused: 409,
    errors.ContextEnded: 409,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.LeaseLost: 409,
    errors.VersionConflict: 409,
    errors.WorkEdited: 409,
    errors.DuplicateMessage: 409,
    errors.QueueFull: 429,
    errors.TerminalTask: 409,
    errors.StepUncertain: 409,
    errors.NotDone: 409,
    errors.SkillFailed: 500,
    errors.SkillRefused: 409,
    errors.ToolFailed: 500,
    errors.SandboxRefused: 501,
    errors.PlaceRefused: 409,
    errors.GitFailed: 500,
    errors.GateFailed: 409,
    errors.NoProgress: 500,
    errors.ThoughtFailed: 500,
    errors.BudgetExceeded: 409,
    errors.ModelError: 502,
    errors.MissingApiKey: 501,
    errors.ModelUnavailable: 503,
    errors.ModelPaused: 503,
    errors.ModelRejected: 502,
    errors.PromptTooLong: 502,
    errors.DecisionInvalid: 502,
    errors.StoreError: 502,
    errors.StoreUnavailable: 503,
    errors.StoreFull: 507,
    errors.StoreRejected: 422,
    errors.IndexMissing: 500,
}
"""Status of each error. Errors do not inherit a status: each new error must be added here, which a test checks."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error response for a case without an exception in ``errors``: unauthorized, too large, not found."""

    status: int
    code: str
    detail: str
    headers: Mapping[str, str] | None = None
    errors: Sequence[Mapping[str, str]] = ()
    retryable: bool = False

    def response(self) -> JSONResponse:
        """Build the HTTP response."""
        content = {
            "type": f"urn:fireswarm:problem:{self.code}",
            "title": self.code.replace("_", " ").capitalize(),
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
            "retryable": self.retryable,
            "errors": [dict(fault) for fault in self.errors],
        }
        headers = dict(self.headers or {})
        if self.retryable:
            headers.setdefault("Retry-After", str(RETRY_AFTER_SECONDS))
        return JSONResponse(content, self.status, headers, MEDIA_TYPE)


class Refused(Exception):
    """Raised if a route refuses by HTTP's rules, such as an If-Match that does not match."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.detail)
        self.refusal = refusal


def refusal_of(error: errors.FireswarmError, redactor: Redactor) -> Refusal:
    """Convert an error to a problem."""
    status = STATUS.get(type(error), 500)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR and not error.retryable:
        logger.error("%s: %s", error.code, error)
    return Refusal(status, error.code, redactor.clean(str(error)), retryable=error.retryable)


def install(app: FastAPI, redactor: Redactor) -> None:
    """Register handlers that turn every error response into a problem."""

    async def handle_our_error(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, errors.FireswarmError)
        return refusal_of(error, redactor).response()

    async def handle_refusal(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, Refused)
        return error.refusal.response()

    async def unfit(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        faults = [_fault(item, redactor) for item in error.errors()]
        detail = "; ".join(f"{fault['where']}: {fault['message']}" for fault in faults[:5])
        return Refusal(422, "invalid_request", f"invalid request: {detail}", errors=faults).response()

    async def plain(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        if isinstance(error.__cause__, RecursionError):
            return Refusal(422, "invalid_request", "the body is nested too deeply to be read").response()
        code = HTTPStatus(error.status_code).name.lower()
        headers = dict(error.headers or {})
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            headers["Allow"] = ", ".join(methods_at(app, request.url.path)) or headers.get("allow", "")
        return Refusal(error.status_code, code, str(error.detail), headers=headers).response()

    async def handle_unexpected(request: Request, error: Exception) -> JSONResponse:
        return Refusal(500, "internal", "internal error; see the log of `swarm api`").response()

    app.add_exception_handler(errors.FireswarmError, handle_our_error)
    app.add_exception_handler(Refused, handle_refusal)
    app.add_exception_handler(RequestValidationError, unfit)
    app.add_exception_handler(HTTPException, plain)
    app.add_exception_handler(Exception, handle_unexpected)


def methods_at(app: FastAPI, path: str) -> list[str]:
    """Return the methods at *path* in the OpenAPI document, and HEAD, which is answered wherever GET has a tag.

    The framework's Allow header names only one route.
    """
    parts = path.split("/")
    for template, operations in app.openapi()["paths"].items():
        named = template.split("/")
        fits = len(named) == len(parts) and all(
            name.startswith("{") or name == part for name, part in zip(named, parts, strict=True)
        )
        if fits:
            head = ["head"] if "304" in operations.get("get", {}).get("responses", ()) else []
            return sorted(method.upper() for method in [*operations, *head])
    return []


def _fault(item: Mapping[str, Any], redactor: Redactor) -> dict[str, str]:
    """Describe a validation error without the rejected value."""
    where = ".".join(str(part) for part in item["loc"])
    return {
        "where": truncate(redactor.clean(where), MAX_DETAIL_CHARS),
        "message": truncate(redactor.clean(describe_fault(item)), MAX_DETAIL_CHARS),
    }
