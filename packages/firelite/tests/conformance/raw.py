"""The generated client, for requests that the Python client does not send."""

from __future__ import annotations

from typing import Any

from google.cloud.firestore import AsyncClient
from google.cloud.firestore_v1.types import document


class Raw:
    """The generated client with helpers for the database's resource names."""

    admin = (("authorization", "Bearer owner"),)
    """Metadata of administrative calls, which Google's emulator demands."""

    def __init__(self, client: AsyncClient) -> None:
        wide: Any = client
        self.api: Any = wide._firestore_api
        self.database = f"projects/{client.project}/databases/(default)"
        self.root = f"{self.database}/documents"

    def name(self, path: str) -> str:
        return f"{self.root}/{path}"

    def document(self, path: str = "", **fields: int) -> document.Document:
        values = {key: document.Value(integer_value=value) for key, value in fields.items()}
        return document.Document(name=self.name(path) if path else "", fields=values)
