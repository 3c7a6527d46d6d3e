"""Addresses of the providers, on one local server: path, credentials and what a platform adds to the body."""

from __future__ import annotations

import json
import re
import urllib.parse
from dataclasses import dataclass
from typing import Any

from tests.support.cloud_accounts import LOCATION, PROJECT, TokenServer, signature_fault
from tests.support.provider_openai import openai_fault
from tests.support.provider_replies import Received
from tests.support.provider_rules import anthropic_body_fault, anthropic_fault, gemini_body_fault, gemini_fault

GEMINI_PATH = re.compile(r"^/v1beta/models/([^/:]+):(generateContent|streamGenerateContent|countTokens)$")
VERTEX_GEMINI = re.compile(
    r"^/v1beta1/projects/([^/]+)/locations/([^/]+)/publishers/google/models/([^/:]+)"
    r":(generateContent|streamGenerateContent|countTokens)$"
)
VERTEX_CLAUDE = re.compile(
    r"^/v1/projects/([^/]+)/locations/([^/]+)/publishers/anthropic/models/([^/]+):(rawPredict|streamRawPredict)$"
)
BEDROCK = re.compile(r"^/model/([^/]+)/(invoke|invoke-with-response-stream)$")
VERSION = re.compile(r"^\d{4}-\d\d-\d\d$")

Read = tuple[Received | None, int, str]
"""The request, or the status and the reason why it is refused."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One HTTP request."""

    method: str
    target: str
    headers: dict[str, str]
    raw: bytes
    body: dict[str, Any]

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    def received(self, platform: str, kind: str, model: str) -> Received:
        turns: list[dict[str, Any]] = self.body.get("messages") or self.body.get("contents") or []
        answers = sum(turn.get("role") in ("assistant", "model") for turn in turns)
        return Received(
            platform.partition("-")[0], kind, model, self.body, self.raw, self.headers, answers, platform, self.target
        )


def route(method: str, target: str, headers: dict[str, str], raw: bytes, tokens: TokenServer) -> Read:
    """Read a request, and check it as the provider at its address does."""
    try:
        asked = Asked(method, target, headers, raw, json.loads(raw))
    except ValueError:
        return None, 400, "the body is not JSON"
    path = asked.path
    if path in ("/v1/messages", "/v1/messages/count_tokens"):
        kind = "count" if path.endswith("count_tokens") else "generate"
        return _read(asked, "anthropic", kind, asked.body.get("model", ""), anthropic_fault(asked.body, headers, kind))
    if found := GEMINI_PATH.match(path):
        return _read(asked, "gemini", _kind(found[2]), found[1], gemini_fault(asked.body, headers))
    if path == "/v1/chat/completions":
        if not headers.get("authorization", "Bearer").startswith("Bearer"):  # many endpoints need none
            return None, 401, "Incorrect API key provided"
        return _read(asked, "openai", "generate", asked.body.get("model", ""), openai_fault(asked.body))
    if found := VERTEX_GEMINI.match(path):
        refusal = _account_fault(asked, tokens, found[1], found[2])
        return refusal or _read(asked, "gemini-vertex", _kind(found[4]), found[3], gemini_body_fault(asked.body))
    if found := VERTEX_CLAUDE.match(path):
        return _account_fault(asked, tokens, found[1], found[2]) or _vertex_claude(asked, found[3], found[4])
    if found := BEDROCK.match(path):
        if fault := signature_fault(method, path, headers, raw):
            return None, 403, fault
        return _bedrock(asked, urllib.parse.unquote(found[1]))
    return None, 404, f"there is no {path}"


def _read(asked: Asked, platform: str, kind: str, model: str, fault: str) -> Read:
    return asked.received(platform, kind, model), 400 if fault else 0, fault


def _kind(verb: str) -> str:
    return "count" if verb == "countTokens" else "generate"


def _account_fault(asked: Asked, tokens: TokenServer, project: str, location: str) -> Read | None:
    if fault := tokens.fault(asked.headers):
        return None, 401, fault
    if "x-goog-api-key" in asked.headers or "x-api-key" in asked.headers:
        return None, 400, "an API key and an access token were given"
    if (project, location) != (PROJECT, LOCATION):
        return None, 403, f"Permission denied on resource projects/{project}/locations/{location}"
    return None


def _vertex_claude(asked: Asked, model: str, verb: str) -> Read:
    counts = model == "count-tokens"
    kind = "count" if counts else "generate"
    if not counts and ("model" in asked.body or bool(asked.body.get("stream")) != (verb == "streamRawPredict")):
        return _read(asked, "anthropic-vertex", kind, model, "model: Extra inputs are not permitted, or a wrong verb")
    return _read(asked, "anthropic-vertex", kind, model, _platform_fault(asked.body, kind))


def _bedrock(asked: Asked, model: str) -> Read:
    fault = "model, stream: Extra inputs are not permitted" if {"model", "stream"} & set(asked.body) else ""
    return _read(asked, "anthropic-bedrock", "generate", model, fault or _platform_fault(asked.body, "generate"))


def _platform_fault(body: dict[str, Any], kind: str) -> str:
    """Both platforms need the version in the body, and know no automatic cache."""
    if not VERSION.match(str(body.get("anthropic_version"))):
        return "anthropic_version: Field required"
    if "cache_control" in body:
        return "cache_control: Extra inputs are not permitted"
    if str(body).count("'cache_control'") > 4:
        return "A maximum of 4 blocks with cache_control may be provided"
    return anthropic_body_fault(body, kind)
