"""Access to Vertex AI by Application Default Credentials: a service account, a user's login, or Cloud Run's own."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

import anyio
import google.auth
from google.auth.credentials import Credentials
from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError, TransportError
from google.auth.transport.requests import Request
from google.oauth2.credentials import Credentials as TokenCredentials

from fireswarm.contracts.limits import MAX_DETAIL_CHARS, truncate
from fireswarm.errors import ConfigError, MissingApiKey, ModelError, ModelRejected, ModelUnavailable
from fireswarm.llm.providers.access import KeyAccess
from fireswarm.llm.providers.faults import MISSHAPEN, cause_of
from fireswarm.settings.agent import ModelSettings
from fireswarm.settings.providers import PLACE, VertexSettings

# Without credentials, google-auth looks for Google's metadata server and would warn about each attempt.
logging.getLogger("google.auth.compute_engine._metadata").setLevel(logging.ERROR)

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
LOGIN = "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to a service account's file"
UNAUTHORIZED = 401
TOKEN_SECONDS = 30
"""Maximum time to wait for the token server."""


class GoogleAccess(KeyAccess):
    """Credentials, and the project that is billed. A token is renewed before it expires, and once after a refusal."""

    advice = {
        400: "the request is not valid for this model: check model.name and the provider's options",
        UNAUTHORIZED: f"the Google credentials are not accepted: {LOGIN}",
        403: "the account may not use the model: grant it roles/aiplatform.user in the project, enable the Vertex AI "
        "API, and enable the model in Model Garden",
        404: "no such model in this project and location: check model.name, the provider's project and location, and "
        "that the model is enabled in Model Garden",
    }
    faults = (GoogleAuthError,)

    def __init__(self, provider: str, credentials: Any, project: str, location: str) -> None:
        """Store the credentials that were found."""
        super().__init__(provider)
        self.credentials, self.project, self.location = credentials, project, location
        self._lock = anyio.Lock()
        self._renewed = False

    async def prepare(self) -> str:
        """Renew the token if there is none or it is about to expire; concurrent callers share one renewal."""
        async with self._lock:
            if self.credentials.token and not self.credentials.expired:
                return self.credentials.token
            try:
                await anyio.to_thread.run_sync(
                    self.credentials.refresh, partial(Request(), timeout=TOKEN_SECONDS), abandon_on_cancel=True
                )
            except GoogleAuthError as error:
                raise self.fault_of(error) from error
            return self.credentials.token

    def accept(self) -> None:
        """Note that the token works, so that a later refusal leads to a new one."""
        self._renewed = False

    def refusal(self, status: int, message: str, headers: Mapping[str, Any], token: str) -> ModelError:
        """Drop a refused token, so that the retry gets a new one; if a new token is refused, the error is final.

        Concurrent calls with the old token are refused as well, and may be repeated.
        """
        is_old = token != self.credentials.token
        if status == UNAUTHORIZED and (is_old or not self._renewed):
            if not is_old:
                self._renewed, self.credentials.token = True, None
            detail = truncate(message.strip(), MAX_DETAIL_CHARS)
            return ModelUnavailable(f"{self.provider} refused the access token: {detail}; getting another", status=401)
        return super().refusal(status, message, headers, token)

    def fault_of(self, error: Exception) -> ModelError:
        """Convert an error of google-auth: the token server may be unreachable, or refuse permanently."""
        detail = truncate(cause_of(error) or str(error), MAX_DETAIL_CHARS)
        message = f"{self.provider}: no access token from Google: {detail}"
        if _is_transient(error):
            return ModelUnavailable(message)
        return ModelRejected(f"{message} ({LOGIN})")


def google_access(model: ModelSettings, environment: Mapping[str, str], *, sends: bool = True) -> GoogleAccess:
    """Find the credentials. Raises MissingApiKey if there are none, ConfigError without a project or valid location.

    With ``sends`` False no credentials are looked up: the access can only preview requests.
    """
    assert isinstance(model.chosen, VertexSettings)
    provider, project = model.provider, model.chosen.project
    project = project or environment.get("GOOGLE_CLOUD_PROJECT", "").strip() or None
    location = model.chosen.location or environment.get("GOOGLE_CLOUD_LOCATION", "").strip() or "global"
    if not re.fullmatch(PLACE, location):
        raise ConfigError(f"GOOGLE_CLOUD_LOCATION is {location!r}: use the name of a location, such as europe-west1")
    if not sends:
        return GoogleAccess(provider, TokenCredentials(token="not sent"), project or "PROJECT", location)
    credentials, own_project = _default_credentials(provider)
    project = project or own_project
    if not project:
        raise ConfigError(
            f"{provider} needs a project, and the Google credentials contain none: set "
            f"model.providers.{provider}.project or GOOGLE_CLOUD_PROJECT"
        )
    return GoogleAccess(provider, credentials, project, location)


def _default_credentials(provider: str) -> tuple[Credentials, str | None]:
    try:
        return google.auth.default(scopes=[SCOPE])  # pyright: ignore[reportUnknownMemberType] - partial types
    except DefaultCredentialsError as error:
        detail = truncate(str(error).rstrip(". "), MAX_DETAIL_CHARS)
        raise MissingApiKey(f"{provider} needs Application Default Credentials: {LOGIN} ({detail})") from error
    except (GoogleAuthError, OSError, *MISSHAPEN) as error:  # a file that is unreadable or has other content
        detail = truncate(cause_of(error) or str(error), MAX_DETAIL_CHARS)
        raise ConfigError(f"{provider}: the Google credentials cannot be read: {detail}: {LOGIN}") from error


def _is_transient(error: BaseException) -> bool:
    """Return True if the token server did not answer, or marked the error as temporary."""
    while True:
        if isinstance(error, TransportError) or getattr(error, "retryable", False):
            return True
        if error.__cause__ is None:
            return False
        error = error.__cause__


def describe_access(model: ModelSettings, environment: Mapping[str, str]) -> str:
    """Return the kind of credentials, the project and the location. Raises as `google_access` does."""
    access = google_access(model, environment)
    kind = type(access.credentials).__module__.removeprefix("google.")
    return f"Google credentials ({kind}), project {access.project}, location {access.location}"
