"""Access to Amazon Bedrock by the credentials that AWS's own tools use. Needs the extra ``bedrock``."""

from __future__ import annotations

from collections.abc import Mapping

import botocore.eventstream
import botocore.exceptions
import botocore.session
from botocore.parsers import ResponseParserError

from fireswarm.contracts.limits import MAX_DETAIL_CHARS, truncate
from fireswarm.errors import ConfigError, MissingApiKey, ModelError, ModelRejected, ModelUnavailable
from fireswarm.llm.providers.access import KeyAccess
from fireswarm.llm.providers.faults import misshapen
from fireswarm.settings.agent import ModelSettings
from fireswarm.settings.providers import BedrockSettings

LOGIN = "run `aws sso login` or `aws configure`, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
_TRANSIENT = (
    botocore.exceptions.HTTPClientError,
    botocore.exceptions.MetadataRetrievalError,
)


class AwsAccess(KeyAccess):
    """Signed requests. The SDK renews the credentials for each one."""

    advice = {
        400: "the request is not valid for this model: check model.name, which may have to be an inference profile "
        "such as us.anthropic.NAME, and the provider's options",
        401: f"the AWS credentials are not accepted: {LOGIN}",
        403: "AWS refused: check that the credentials are valid, that they allow bedrock:InvokeModel and "
        "bedrock:InvokeModelWithResponseStream, and that access to the model is enabled in this region",
        404: "no such model in this region: check model.name and model.providers.anthropic-bedrock.region",
        424: "the model failed to process the request: repeating it will not help",
    }
    faults = (botocore.exceptions.BotoCoreError, botocore.eventstream.ParserError, ResponseParserError, RuntimeError)

    def fault_of(self, error: Exception) -> ModelError:
        """Convert an error of botocore: a broken stream, or credentials that are missing or unreachable."""
        if isinstance(error, (botocore.eventstream.ParserError, ResponseParserError)):
            return misshapen(self.provider, error)
        message = f"{self.provider}: no AWS credentials: {truncate(str(error), MAX_DETAIL_CHARS)}"
        return ModelUnavailable(message) if isinstance(error, _TRANSIENT) else ModelRejected(f"{message} ({LOGIN})")


def find_region(provider: str, region: str | None, *, signs: bool) -> str:
    """Return the region.

    Raises ConfigError without a region, and MissingApiKey if a request that *signs* has no credentials.
    """
    session = botocore.session.Session()
    try:
        region = region or session.get_config_variable("region")
        credentials = session.get_credentials() if signs else None
    except botocore.exceptions.BotoCoreError as error:
        raise MissingApiKey(f"{provider}: {truncate(str(error), MAX_DETAIL_CHARS)}: {LOGIN}") from error
    if not region:
        raise ConfigError(f"{provider} needs a region: set model.providers.{provider}.region or AWS_REGION")
    if signs and credentials is None:
        raise MissingApiKey(f"{provider} needs AWS credentials: {LOGIN}")
    return region


def describe_access(model: ModelSettings, environment: Mapping[str, str]) -> str:
    """Return the kind of credentials and the region. Raises ConfigError or MissingApiKey with what is missing."""
    assert isinstance(model.chosen, BedrockSettings)
    bearer = bool(environment.get("AWS_BEARER_TOKEN_BEDROCK"))
    region = find_region(model.provider, model.chosen.region, signs=not bearer)
    return f"{'AWS_BEARER_TOKEN_BEDROCK' if bearer else 'AWS credentials'}, region {region}"
