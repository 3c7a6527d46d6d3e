"""Every error class has an HTTP status, and every field of the OpenAPI document has a description."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from fireswarm import errors
from fireswarm.api.application import make_application
from fireswarm.api.auth import Access
from fireswarm.api.problems import STATUS, refusal_of
from fireswarm.api.session import ApiSession
from fireswarm.redaction import REDACTED, Redactor
from tests.support.swarm import open_test_swarm

TREE = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.FireswarmError)]


@pytest.mark.parametrize("kind", [kind for kind in TREE if kind is not errors.FireswarmError])
def test_every_error_has_a_status(kind: type[errors.FireswarmError]) -> None:
    assert 400 <= STATUS[kind] < 600


def test_status_table_lists_only_existing_errors() -> None:
    assert set(STATUS) == set(TREE) - {errors.FireswarmError}


def test_problem_has_redacted_detail_and_retryable_flag() -> None:
    refusal = refusal_of(errors.StoreUnavailable("key sk-ant-0123456789abcdefghij"), Redactor())
    assert (refusal.status, refusal.code, refusal.retryable) == (503, "store_unavailable", True)
    assert refusal.detail == f"key {REDACTED}"


@pytest.mark.anyio
async def test_every_field_and_parameter_has_a_description_and_an_example() -> None:
    async with open_test_swarm() as swarm:
        document = make_application(ApiSession(swarm.client, Redactor())).openapi()
    missing = [
        f"{name}.{field}"
        for name, schema in document["components"]["schemas"].items()
        for field, about in schema.get("properties", {}).items()
        if not about.get("description") or "examples" not in about
    ]
    assert missing == []
    assert [name for name, schema in document["components"]["schemas"].items() if not described(schema)] == []
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert operation.get("description"), f"{method} {path}"
            assert "default" in operation["responses"], f"{method} {path}"
            for parameter in operation.get("parameters", []):
                assert parameter.get("description"), f"{method} {path} {parameter['name']}"


def described(schema: dict[str, Any]) -> bool:
    return bool(schema.get("description"))


def test_repr_of_access_hides_the_token() -> None:
    assert "secret-secret-secret" not in repr(Access("secret-secret-secret"))
