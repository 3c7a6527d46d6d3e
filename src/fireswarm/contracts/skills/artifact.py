"""Artifacts, signals and attachments: what tasks pass to each other."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
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

ANSWER, DIFF, ATTACHMENT, PIPELINE_FILE = "answer", "diff", "attachment", "pipeline_file"

OWN_TYPES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        ANSWER: (),
        DIFF: (),
        ATTACHMENT: (),
        PIPELINE_FILE: (),
        "brief": ("request-clarifier",),
        "content_summary": ("content-summarizer",),
        "csv_forecast": ("csv-forecast",),
        "inventory": ("workspace-inventory",),
        "inventory_shard": ("workspace-inventory",),
        "keyword_hits": ("keyword-search-extractor",),
        "keyword_list": ("keyword-search-extractor",),
        "plan": ("plan-objective",),
        "recalled_facts": ("fact-recall",),
        "risk_scores": ("risk-forecast",),
        "session_summary": ("session-compactor",),
    }
)
"""Types of artifacts that code of fireswarm takes for its own, with the names of the skills that make them.

The types without a skill are made by fireswarm itself, or by the steps of a pipeline. Models and all other skills make
none of them.
"""


def type_refusal(kind: str, skill: str = "") -> str:
    """Return why the *skill*, or a model if it is "", may not make an artifact of the type *kind*, or ""."""
    makers = OWN_TYPES.get(kind.strip().casefold())
    if makers is None or skill in makers:
        return ""
    made = f"the skill {makers[0]}" if makers else "a pipeline" if kind == PIPELINE_FILE else "fireswarm"
    return f"only {made} makes artifacts of the type {kind}: take another word, such as report"


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
