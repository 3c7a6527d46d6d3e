"""All access to internals of the official client that the adapter needs.

``AsyncClient`` is created with the user's settings; this module uses its generated API client, database name and
request metadata, like its own methods.
"""

# pyright: reportPrivateUsage=false
# These names have no public spelling; tests/integration/test_store.py fails when a release renames one.

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from google.cloud.firestore_v1 import AsyncClient

from fireswarm.settings import STORE_TOKEN


@dataclass(frozen=True, slots=True)
class Channel:
    """The generated API client (one method per RPC), and the resource names for requests."""

    api: Any
    database: str
    metadata: Sequence[tuple[str, str]]

    @property
    def root(self) -> str:
        """Parent of every top-level collection."""
        return f"{self.database}/documents"

    def parent_of(self, collection: str) -> str:
        """Parent of a collection: a document for ``agent_runs/RUN/journal``, the root for ``agent_runs``."""
        above = collection.rpartition("/")[0]
        return f"{self.root}/{above}" if above else self.root


def channel_of(client: AsyncClient) -> Channel:
    """Return the channel that *client* uses."""
    metadata = [(name, value) for name, value in client._rpc_metadata]
    if token := os.environ.get(STORE_TOKEN):
        metadata = [item for item in metadata if item[0] != "authorization"] + [("authorization", f"Bearer {token}")]
    return Channel(client._firestore_api, client._database_string, metadata)


async def close(client: AsyncClient) -> None:
    """Close a client's connection; its own ``close`` leaves the channel open."""
    await client._firestore_api.transport.close()
