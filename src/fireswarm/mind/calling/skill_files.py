"""Files of skills as the model reads them: text in pages, images and PDFs as they are."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from fireswarm.capabilities.workspace.images import check_media, kind_of_media
from fireswarm.contracts.limits import SNIFF_BYTES
from fireswarm.contracts.media import MediaBlock
from fireswarm.contracts.text_page import MAX_LINES
from fireswarm.errors import InvalidInput
from fireswarm.mind.briefing import Briefing
from fireswarm.mind.calling.values import number_in


@dataclass(slots=True)
class SkillFiles:
    """Reads files of skills. An image or a PDF waits for the output of its call."""

    briefing: Briefing
    _media: dict[str, MediaBlock] = field(default_factory=dict[str, MediaBlock])

    async def read(self, step: str, given: Mapping[str, Any]) -> str:
        """Return what a call of `read_skill_file` shows as text. Raises InvalidInput if it cannot be read."""
        name = self.briefing.resolve(str(given.get("skill") or ""))
        path = str(given.get("path") or "").strip()
        offset, limit = number_in(given, "offset", 1), number_in(given, "limit", MAX_LINES)
        if path and "#" not in path:
            real, content = self.briefing.file_content(name, path)
            place = f"$SKILL_DIR/{real}"
            if kind := kind_of_media(PurePath(real), content):
                check_media(place, kind, content)
                self._media[step] = MediaBlock(media_type=kind, data=base64.b64encode(content).decode())
                text = f"{real}: {kind}, {len(content):,} bytes"
                self.briefing.note_file(name, real, text)
                return text
            if b"\0" in content[:SNIFF_BYTES]:
                raise InvalidInput(
                    f"{path} is not text: it has {len(content):,} bytes; look into it with run_command, as {place}, "
                    f"while you use the skill {name}"
                )
        return self.briefing.file_page(name, path, offset, limit)

    def take_media(self, step: str) -> tuple[MediaBlock, ...]:
        """Return the image or PDF that a call shows, once."""
        media = self._media.pop(step, None)
        return (media,) if media is not None else ()
