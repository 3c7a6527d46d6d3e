"""Artifacts, signals and attachments: what tasks pass to each other."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fireswarm.contracts.base import Contract, Json

WORKDIR_URI = "workdir:"
"""Scheme of the URI of an artifact that is a file in the skill's workdir, until it is published."""

OUTPUT_FOLDER = "outputs"
"""Folder in a skill's workdir whose files become artifacts, even if the skill does not list them."""

OUTPUT_VARIABLE = "OUTPUT_DIR"
"""Environment variable with the output folder of a command or skill."""

STORED_VALUE = "application/vnd.fireswarm.value+json"
"""Mime type of an artifact whose value was too large for a document and is in the blob store."""


def is_link(uri: str) -> bool:
    """Return True for an address of the web, which is shown and passed on, but never fetched."""
    return uri.startswith(("https://", "http://")) and "::" not in uri


class Artifact(Contract):
    """An artifact that a task produced.

    ``value`` holds small JSON content; larger content lives in the blob store under ``uri``.
    ``type`` is a short registered word such as ``inventory``, ``report`` or ``url_list``.
    """

    type: str = Field(min_length=1, max_length=64)
    name: str = ""
    summary: str = ""
    value: Json = None
    uri: str | None = None
    mime: str | None = None
    size_bytes: int | None = Field(default=None, ge=0)
    sha256: str | None = None
    source_task_id: str | None = None


class Signal(Contract):
    """An observation: a name, a strength from 0 to 1, and a subject."""

    name: str = Field(min_length=1, max_length=128)
    strength: float = Field(ge=0.0, le=1.0)
    subject: str = ""
    note: str = ""


class Attachment(Contract):
    """An input of the task, given by URI."""

    name: str = Field(min_length=1)
    mime: str = "application/octet-stream"
    uri: str = Field(min_length=1)


Confidence = Annotated[float, Field(ge=0.0, le=1.0)]
"""A number between 0 and 1, like a probability."""


class MediaBlock(Contract):
    """An image or a PDF document for a model: ``data`` in base64, and its media type."""

    media_type: str
    data: str
