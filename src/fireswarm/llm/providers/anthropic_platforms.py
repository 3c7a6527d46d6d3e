"""Claude on Vertex AI and Amazon Bedrock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx2
from anthropic.lib.bedrock import AsyncAnthropicBedrock
from anthropic.lib.vertex import AsyncAnthropicVertex

from fireswarm.llm.providers.access import KeyAccess
from fireswarm.llm.providers.anthropic import AnthropicModel
from fireswarm.llm.providers.google_access import GoogleAccess

BEDROCK = "anthropic-bedrock"
SHOWN_REGION = "us-east-1"


def claude_on_vertex(
    name: str, access: GoogleAccess, *, base_url: str | None, timeout_seconds: float, options: Mapping[str, Any]
) -> AnthropicModel:
    """Return a Claude model on Vertex AI, by Application Default Credentials."""
    client = AsyncAnthropicVertex(
        project_id=access.project,
        region=access.location,
        credentials=access.credentials,
        base_url=base_url,
        max_retries=0,
        timeout=httpx2.Timeout(timeout_seconds),
    )
    return AnthropicModel(name, client, access, options=options)


def claude_on_bedrock(
    name: str,
    region: str | None,
    bearer: str | None = None,
    *,
    sends: bool = True,
    base_url: str | None,
    timeout_seconds: float,
    options: Mapping[str, Any],
) -> AnthropicModel:
    """Return a Claude model on Bedrock: with a *bearer* token, or with AWS credentials that sign each request."""
    access = KeyAccess(BEDROCK)
    if sends:
        from fireswarm.llm.providers.aws_access import AwsAccess, find_region

        access, region = AwsAccess(BEDROCK), find_region(BEDROCK, region, signs=bearer is None)
    client = AsyncAnthropicBedrock(
        aws_region=region or SHOWN_REGION,
        api_key=bearer,
        base_url=base_url,
        max_retries=0,
        timeout=httpx2.Timeout(timeout_seconds),
    )
    return AnthropicModel(name, client, access, options=options)
