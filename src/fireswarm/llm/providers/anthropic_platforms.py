"""Claude on Vertex AI and Amazon Bedrock."""

from __future__ import annotations

from collections.abc import Mapping

import httpx2
from anthropic.lib.bedrock import AsyncAnthropicBedrock
from anthropic.lib.vertex import AsyncAnthropicVertex

from fireswarm.llm.providers.access import KeyAccess
from fireswarm.llm.providers.anthropic import AnthropicModel
from fireswarm.llm.providers.google_access import google_access
from fireswarm.settings.agent import ModelSettings
from fireswarm.settings.providers import BedrockSettings

BEARER = "AWS_BEARER_TOKEN_BEDROCK"
SHOWN_REGION = "us-east-1"


def open_on_vertex(model: ModelSettings, _key: str, environment: Mapping[str, str], sends: bool) -> AnthropicModel:
    """Return the configured Claude model on Vertex AI, by Application Default Credentials."""
    access = google_access(model, environment, sends=sends)
    client = AsyncAnthropicVertex(
        project_id=access.project,
        region=access.location,
        credentials=access.credentials,
        base_url=model.chosen.base_url,
        max_retries=0,
        timeout=httpx2.Timeout(model.request_timeout_seconds),
    )
    return AnthropicModel(model.model_name, client, access, options=model.chosen.options)


def open_on_bedrock(model: ModelSettings, _key: str, environment: Mapping[str, str], sends: bool) -> AnthropicModel:
    """Return the configured Claude model on Bedrock: by a bearer token, else by AWS credentials."""
    assert isinstance(model.chosen, BedrockSettings)
    bearer = environment.get(BEARER, "").strip() or None
    access, region = KeyAccess(model.provider), model.chosen.region
    if sends:
        from fireswarm.llm.providers.aws_access import AwsAccess, find_region

        access, region = AwsAccess(model.provider), find_region(model.provider, region, signs=bearer is None)
    client = AsyncAnthropicBedrock(
        aws_region=region or SHOWN_REGION,
        api_key=bearer,
        base_url=model.chosen.base_url,
        max_retries=0,
        timeout=httpx2.Timeout(model.request_timeout_seconds),
    )
    return AnthropicModel(model.model_name, client, access, options=model.chosen.options)
