"""An image or a document for a model."""

from __future__ import annotations

from fireswarm.contracts.base import Contract


class MediaBlock(Contract):
    """An image or a PDF document for a model: ``data`` in base64, and its media type."""

    media_type: str
    data: str
