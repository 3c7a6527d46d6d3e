"""Translate the official client's exceptions into the errors of ``fireswarm.errors``."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator

from google.api_core import exceptions as google

from fireswarm.contracts.foreign.call import refuse_own_end
from fireswarm.errors import (
    Conflict,
    FireswarmError,
    IndexMissing,
    StoreError,
    StoreFull,
    StoreRejected,
    StoreUnavailable,
)
from fireswarm.settings import STORE_TOKEN

CONFLICTS = (google.AlreadyExists, google.FailedPrecondition, google.Aborted, google.NotFound)
TRANSIENT = (
    google.ServiceUnavailable,
    google.DeadlineExceeded,
    google.InternalServerError,
    google.Unknown,
    google.Cancelled,  # by the server: a scope of ours that is canceled raises CancelledError
)
"""The same request may succeed later; a commit that ended with one of them may have been applied."""

NOT_APPLIED = (google.ClientError, google.MethodNotImplemented)
"""The store refused a commit. After any other error it may have been applied."""


def translate(error: google.GoogleAPICallError | google.RetryError, doing: str) -> FireswarmError:
    """Return our error for *error*. The message names the operation and contains the store's error text."""
    text = getattr(error, "message", None) or str(error)
    if isinstance(error, google.FailedPrecondition) and "index" in text.lower():
        return IndexMissing(f"{doing}: {text}")
    if isinstance(error, CONFLICTS):
        return Conflict(f"{doing}: {text}", exists=isinstance(error, google.AlreadyExists))
    if isinstance(error, google.ResourceExhausted):
        return StoreFull(
            f"{doing}: {text}. Nothing was written. Free space on the store's disk or raise the quota, then try again."
        )
    if isinstance(error, (*TRANSIENT, google.RetryError)):
        return StoreUnavailable(
            f"{doing}: {text}. Check that the store is running (`swarm doctor`); the same request can be sent again."
        )
    if isinstance(error, (google.PermissionDenied, google.Unauthenticated)):
        return StoreError(
            f"{doing}: {text}. "
            f"A firelite needs its token in {STORE_TOKEN}. For Google Cloud, run "
            "`gcloud auth application-default login`, or give the service account roles/datastore.user."
        )
    if isinstance(error, google.InvalidArgument):
        return StoreRejected(f"{doing}: {text}")
    return StoreError(f"{doing}: {text}")


@contextlib.asynccontextmanager
async def translate_errors(doing: str) -> AsyncGenerator[None]:
    """Raise our errors in place of the client's; *doing* names the document or query."""
    try:
        async with translate_cancellation(doing):
            yield
    except (google.GoogleAPICallError, google.RetryError) as error:
        raise translate(error, doing) from error


@contextlib.asynccontextmanager
async def translate_cancellation(doing: str) -> AsyncGenerator[None]:
    """Make a canceled scope end the calls inside the block.

    gRPC raises a new CancelledError, which anyio takes for one of another library: it would pass through every scope
    and end the process. If neither a scope nor the task was canceled, only the call has ended: raises StoreUnavailable.
    """
    sent_again = f"{doing}: the connection ended the call. The same request can be sent again."
    async with refuse_own_end("the call", lambda _: StoreUnavailable(sent_again)):
        yield
