"""Official clients of the servers under test."""

from __future__ import annotations

import os
from collections.abc import Callable
from unittest import mock

from google.auth.credentials import AnonymousCredentials
from google.cloud.firestore import AsyncClient

EXTERNAL_HOST = os.environ.get("FIRESTORE_EMULATOR_HOST")
"""Address of another server that the tests run on as well."""

type Says = Callable[[str], str]
"""Returns the pattern of a message that should hold a text."""


def make_client[C](cls: type[C], endpoint: str, project: str) -> C:
    """Make a client of the server at *endpoint*; clients read the variable only when they are created."""
    with mock.patch.dict(os.environ, FIRESTORE_EMULATOR_HOST=endpoint):
        return cls(project=project, credentials=AnonymousCredentials())  # pyright: ignore[reportCallIssue] - C is one of two clients


async def close_client(client: AsyncClient) -> None:
    # client.close() leaves the channel open.
    await client._firestore_api.transport.close()  # pyright: ignore[reportPrivateUsage] - there is no public way
