"""The session file system: files shared by the agents of a session and invisible to others.

Directories are not stored: they follow from the paths of the files.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import anyio.to_thread
from pydantic import BaseModel, ConfigDict, Field

from fireswarm.capabilities.capability import Capability, CapabilityContext, tool
from fireswarm.capabilities.session_files.content import expect_version, returned_content, stored_content
from fireswarm.capabilities.session_files.paths import after, below, file_path, fits, normal, parents, range_of
from fireswarm.capabilities.session_files.storage import FolderShelf, Shelf, StoredFile, StoreShelf, size_of
from fireswarm.capabilities.text_diff import text_diff
from fireswarm.capabilities.workspace.matching_lines import check_search, find_matching_lines
from fireswarm.capabilities.workspace.shown_text import lines_of
from fireswarm.contracts.skills.tool import Tool
from fireswarm.errors import Conflict, InvalidInput, NotFound

MAX_ENTRIES = 500
MAX_MATCHES = 100
MAX_LISTED = 100
"""Files that a preview of a deletion names."""

MAX_LINE_CHARS = 300
MAX_SEARCHED_BYTES = 50_000_000
PAGE = 250
"""Files read per page: their content is read too, so this limits the memory of a listing."""

WRITE_ATTEMPTS = 8
COUNT_AGAIN_AFTER = 50
"""New files between two counts: concurrent writers may each exceed ``max_files`` by this number."""


class SessionFilesConfig(BaseModel):
    """Limits of a session's files."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_file_bytes: int = Field(
        default=262_144, ge=1, le=1_000_000, description="maximum bytes of a file; a Firestore document holds 1 MiB"
    )
    max_files: int = Field(default=2_000, ge=1, le=100_000, description="maximum files per session")


# ── the tools ───────────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class SessionFiles:
    """The tools on one session's files.

    ``folders`` are paths known to be folders, ``room`` the number of new files until the next count:
    both only save reads. Two processes may concurrently create a file and a folder with the same path; both can be
    read, listed and deleted.
    """

    shelf: Shelf
    config: SessionFilesConfig
    folders: set[str] = field(default_factory=set[str])
    room: int = 0

    async def read_file(self, path: str) -> dict[str, Any]:
        """Reads a file of the session. path is absolute, such as /docs/readme.txt."""
        place = normal(path)
        kept = await self._get(place)
        if kept is None:
            if await self._is_folder(place):
                raise InvalidInput(f"{place} is a directory: use list_directory")
            raise NotFound(f"there is no file {place}: list_directory shows the files")
        return {
            "path": place,
            "content": returned_content(kept.content),
            "encoding": kept.encoding,
            "size_bytes": kept.size_bytes,
            "version": kept.version,
        }

    async def write_file(
        self,
        path: str,
        content: str,
        encoding: Literal["text", "base64"] = "text",
        if_version: int | None = None,
    ) -> dict[str, Any]:
        """Creates or replaces a file. With if_version only that version is replaced (0: only a new file is made)."""
        place = file_path(path)
        kept = stored_content(content, encoding, self.config.max_file_bytes)
        note: dict[str, Any] = {"redacted": True} if encoding == "text" and kept != content else {}
        unsure: int | None = None
        for _ in range(WRITE_ATTEMPTS):
            before = await self._get(place)
            if unsure is not None and before is not None and (before.version, before.content) == (unsure, kept):
                note.pop("overtook")  # the answer was lost, but the write succeeded
                return self._write_result(before.version, kept, place, note)
            expect_version(place, before, if_version)
            if before is None:
                await self._admit(place)
            try:
                version = await self.shelf.put(place, kept, before)
            except Conflict as error:
                note["overtook"] = (
                    "another agent wrote this file at the same time: read it and merge if both versions matter"
                )
                unsure = (1 if before is None else before.version + 1) if error.ambiguous else None
                continue
            return self._write_result(version, kept, place, note)
        raise Conflict(f"{place} has too many concurrent writers: try again, or use a separate file")

    async def list_directory(self, path: str = "/") -> dict[str, Any]:
        """Lists the files and directories in a directory, by default in the root."""
        place = normal(path)
        entries: dict[str, dict[str, Any]] = {}
        lower, upper = below(place)
        skip = len(lower)
        while lower < upper:
            page = await self.shelf.between(lower, upper, PAGE)
            for kept in page:
                name, nested, _ = kept.path[skip:].partition("/")
                entries.setdefault(f"{name}{nested}", _entry(kept, kept.path[:skip] + name, nested))
            if len(page) < PAGE or len(entries) > MAX_ENTRIES:
                break
            name, nested, _ = page[-1].path[skip:].partition("/")
            lower = below(page[-1].path[:skip] + name)[1] if nested else after(page[-1].path)
        if not entries and place != "/":
            if await self._get(place) is not None:
                raise InvalidInput(f"{place} is a file: use read_file")
            raise NotFound(f"there is no directory {place}: list_directory of / shows the directories")
        shown = sorted(entries.values(), key=lambda entry: entry["path"])[:MAX_ENTRIES]
        cut = {"truncated": f"only the first {MAX_ENTRIES} entries are shown"} if len(entries) > MAX_ENTRIES else {}
        return {"path": place, "entries": shown, "count": len(shown), **cut}

    async def grep_files(self, pattern: str, path_pattern: str | None = None) -> dict[str, Any]:
        """Finds lines by a regular expression without look-around; path_pattern, as *.txt or /docs/*, limits where."""
        check_search(pattern)
        matches: list[dict[str, Any]] = []
        total = files = searched = 0
        lower, upper = range_of(path_pattern or "*")
        async for page in self._pages(lower, upper):
            texts = [
                (kept.path, kept.content)
                for kept in page
                if isinstance(kept.content, str) and fits(kept.path, path_pattern or "*")
            ]
            hits, lines = await anyio.to_thread.run_sync(_matches, pattern, texts, MAX_MATCHES - len(matches))
            matches += hits
            total, files = total + lines, files + len(texts)
            searched += sum(len(text) for _, text in texts)
            if searched > MAX_SEARCHED_BYTES:
                break
        cut: dict[str, Any] = {}
        if total > len(matches):
            cut["truncated"] = f"only the first {MAX_MATCHES} lines are shown"
        if searched > MAX_SEARCHED_BYTES:
            cut["stopped"] = f"the search stopped after {MAX_SEARCHED_BYTES:,} characters: narrow path_pattern"
        return {"pattern": pattern, "matches": matches, "match_count": total, "searched_files": files, **cut}

    async def delete_file(self, path: str, recursive: bool = False) -> dict[str, Any]:
        """Deletes a file, or with recursive a directory and all that is in it."""
        place = normal(path)
        paths = [place] if place != "/" and await self._get(place) is not None else []
        lower, upper = below(place)
        if not paths and not recursive and await self.shelf.between(lower, upper, 1):
            raise InvalidInput(
                f"{place} is a directory that is not empty: pass recursive=true to delete it with its content"
            )
        if recursive:
            async for page in self._pages(lower, upper):
                paths += [kept.path for kept in page]
        await self.shelf.remove(paths)
        self.folders, self.room = set(), 0
        return {"path": place, "deleted": bool(paths), "files_deleted": len(paths)}

    async def stat_file(self, path: str) -> dict[str, Any]:
        """Tells whether a path is a file or a directory, its size, its version and its times."""
        place = normal(path)
        kept = None if place == "/" else await self._get(place)
        is_folder = kept is None and (place == "/" or await self._is_folder(place))
        return {
            "path": place,
            "name": place.rpartition("/")[2],
            "exists": is_folder or kept is not None,
            "is_directory": is_folder,
            "is_readonly": False,
            "size_bytes": kept.size_bytes if kept else 0,
            "encoding": kept.encoding if kept else None,
            "version": kept.version if kept else None,
            "created_at": kept.created_at if kept else None,
            "updated_at": kept.updated_at if kept else None,
        }

    async def preview_write(
        self,
        path: str,
        content: str,
        encoding: Literal["text", "base64"] = "text",
        if_version: int | None = None,
    ) -> str:
        """Return the change of a file as a diff. Raises InvalidInput for what the tool refuses."""
        place = file_path(path)
        after = stored_content(content, encoding, self.config.max_file_bytes)
        before = await self._get(place)
        expect_version(place, before, if_version)
        return text_diff(place, before.content if before is not None else None, after)

    async def preview_delete(self, path: str, recursive: bool = False) -> str:
        """Return the names of the files that would be deleted."""
        place = normal(path)
        stored = [
            await self._get(place),
            *(await self.shelf.between(*below(place), MAX_LISTED + 1) if recursive else []),
        ]
        names = [f"- {each.path}" for each in stored if each is not None]
        return "\n".join([*names[:MAX_LISTED], *(["... and more"] if len(names) > MAX_LISTED else [])])

    async def _get(self, path: str) -> StoredFile | None:
        return (await self.shelf.get_many([path]))[0]

    async def _is_folder(self, path: str) -> bool:
        return bool(await self.shelf.between(*below(path), 1))

    async def _pages(self, lower: str, upper: str) -> AsyncIterator[list[StoredFile]]:
        """Yield all files of a range, page by page; at least one page, which may be empty."""
        while True:
            page = await self.shelf.between(lower, upper, PAGE)
            yield page
            if len(page) < PAGE:
                return
            lower = after(page[-1].path)

    async def _admit(self, path: str) -> None:
        """Raise InvalidInput if a new file cannot be created."""
        if await self._is_folder(path):
            raise InvalidInput(f"{path} is a directory: give a file path")
        unknown = [parent for parent in parents(path) if parent not in self.folders]
        for parent, there in zip(unknown, await self.shelf.get_many(unknown), strict=True):
            if there is not None:
                raise InvalidInput(f"{parent} is a file, not a directory: choose another path")
        if self.room <= 0:
            self.room = min(COUNT_AGAIN_AFTER, self.config.max_files - await self.shelf.count())
        if self.room <= 0:
            raise InvalidInput(
                f"file limit of the session reached ({self.config.max_files:,}): delete some with delete_file, "
                "or raise max_files in the capability's configuration"
            )

    def _write_result(self, version: int, content: str | bytes, path: str, told: dict[str, Any]) -> dict[str, Any]:
        self.folders.update(parents(path))
        self.room -= version == 1
        return {"path": path, "size_bytes": size_of(content), "created": version == 1, "version": version} | told


def _matches(pattern: str, texts: list[tuple[str, str]], limit: int) -> tuple[list[dict[str, Any]], int]:
    """Return the first matching lines of named texts, and their number."""
    matches: list[dict[str, Any]] = []
    total = 0
    for path, text in texts:
        lines = lines_of(text)
        numbers = find_matching_lines(pattern, lines)
        total += len(numbers)
        for number in numbers[: limit - len(matches)]:
            matches.append({"path": path, "line": number + 1, "text": lines[number][:MAX_LINE_CHARS]})
    return matches, total


def _entry(kept: StoredFile, path: str, nested: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": path.rpartition("/")[2], "path": path, "is_directory": bool(nested)}
    if nested:
        return entry
    return entry | {"size_bytes": kept.size_bytes, "version": kept.version, "updated_at": kept.updated_at}


def _tools(config: SessionFilesConfig, context: CapabilityContext) -> Sequence[Tool]:
    """Return the tools, on the store or on a folder."""
    store = context.store
    shelf = StoreShelf(store, context.session) if store is not None else FolderShelf(context.workdir, context.session)
    files = SessionFiles(shelf, config)
    return [
        tool(files.read_file),
        tool(writes=True, preview=files.preview_write, idempotent=True)(files.write_file),
        tool(files.list_directory),
        tool(files.grep_files),
        tool(writes=True, preview=files.preview_delete, idempotent=True)(files.delete_file),
        tool(files.stat_file),
    ]


PROMPT = """# Files of the session

You have a file system that only the agents of this session share; it is not the workspace. Paths begin at the root, as
in /notes/plan.md, and directories come by themselves. Look around before you write: `list_directory` for what is there,
`grep_files` for where something stands, `stat_file` for size and version. Text is written as it is, anything else as
base64. Others may write too: to change what you have read, give `write_file` its version as if_version, and read again
when that is refused. Keep files small and named by what they hold; delete only what is yours."""


SESSION_FILES = Capability(
    "session_file_system",
    "File System",
    "Reads, writes, lists, searches and deletes files shared by the agents of a session.",
    tools=_tools,
    system_prompt=PROMPT,
    config=SessionFilesConfig,
    icon="folder",
    category="File Operations",
)
