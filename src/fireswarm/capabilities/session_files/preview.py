"""Preview of a write or a deletion in the session file system."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fireswarm.capabilities.session_files.content import expect_version, stored_content
from fireswarm.capabilities.session_files.paths import below, file_path, normal
from fireswarm.capabilities.session_files.storage import Shelf
from fireswarm.capabilities.text_diff import text_diff

MAX_LISTED = 100


@dataclass(frozen=True, slots=True)
class Previews:
    """The changes that calls of the tools would make. They raise InvalidInput for what the tools refuse."""

    shelf: Shelf
    max_file_bytes: int

    async def write_file(
        self,
        path: str,
        content: str,
        encoding: Literal["text", "base64"] = "text",
        if_version: int | None = None,
    ) -> str:
        """Return the change of the file as a diff."""
        place = file_path(path)
        after = stored_content(content, encoding, self.max_file_bytes)
        [stored] = await self.shelf.get_many([place])
        expect_version(place, stored, if_version)
        return text_diff(place, stored.content if stored is not None else None, after)

    async def delete_file(self, path: str, recursive: bool = False) -> str:
        """Return the names of the files that would be deleted."""
        place = normal(path)
        found = [stored.path for stored in await self.shelf.get_many([place]) if stored is not None]
        if recursive:
            found += [stored.path for stored in await self.shelf.between(*below(place), MAX_LISTED + 1)]
        more = ["... and more"] if len(found) > MAX_LISTED else []
        return "\n".join([*(f"- {name}" for name in found[:MAX_LISTED]), *more])
