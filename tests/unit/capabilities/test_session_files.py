"""The session file system: shared within a session, hidden from others, versioned, limited."""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from google.api_core import exceptions as google
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fireswarm.capabilities import CapabilityContext
from fireswarm.capabilities.session_files.capability import WRITE_ATTEMPTS, SessionFiles, SessionFilesConfig
from fireswarm.capabilities.session_files.storage import FolderShelf, StoredFile, StoreShelf
from fireswarm.contracts.ports import Query
from fireswarm.errors import ConfigError, Conflict, InvalidInput, NotFound
from fireswarm.redaction import Redactor
from fireswarm.storage.documents.paths import FILES
from fireswarm.storage.firestore.store import FirestoreStore
from tests.support.hands import Hands
from tests.support.swarm import SwarmRig, open_test_swarm
from tests.support.unreliable import time_flows, unreliable

pytestmark = pytest.mark.anyio


def process(swarm: SwarmRig, session: str = "s1", **config: Any) -> Hands:
    """Make the tools of another process of the session: a separate client of the same database."""
    store = FirestoreStore(swarm.connect(), swarm.clock)
    return Hands(CapabilityContext(session, Path(), swarm.clock, store), **config)


@pytest.fixture(params=["store", "folder"])
def hands(request: pytest.FixtureRequest, swarm: SwarmRig, tmp_path: Path) -> Callable[..., Hands]:
    """The tools on each kind of shelf."""

    def make(**config: Any) -> Hands:
        store = swarm.store if request.param == "store" else None
        return Hands(CapabilityContext("s1", tmp_path, swarm.clock, store), **config)

    return make


# ── every kind of shelf ─────────────────────────────────────────────────────────────────────────────────


async def test_file_can_be_written_read_and_replaced(hands: Callable[..., Hands]) -> None:
    use = hands()
    assert await use("write_file", path="/docs/a.txt", content="grüß\n") == {
        "path": "/docs/a.txt",
        "size_bytes": 7,
        "created": True,
        "version": 1,
    }
    again = await use("write_file", path="docs//./a.txt", content="two")
    assert (again["created"], again["version"]) == (False, 2)
    read = {"path": "/docs/a.txt", "content": "two", "encoding": "text", "size_bytes": 3, "version": 2}
    assert await use("read_file", path="/docs/a.txt") == read


async def test_binary_content_is_stored_as_base64(hands: Callable[..., Hands]) -> None:
    use = hands()
    content = base64.b64encode(bytes(range(256))).decode()
    written = await use("write_file", path="/b.bin", content=f"{content[:76]}\n{content[76:]}", encoding="base64")
    assert written["size_bytes"] == 256
    read = await use("read_file", path="/b.bin")
    assert (read["content"], read["encoding"], read["size_bytes"]) == (content, "base64", 256)
    with pytest.raises(InvalidInput, match="not base64"):
        await use("write_file", path="/c.bin", content="%%%", encoding="base64")


async def test_directories_are_derived_from_paths(hands: Callable[..., Hands]) -> None:
    use = hands()
    assert await use.paths() == []
    for path in ("/a/b/c.txt", "/a/x.txt", "/a.txt", "/a0.txt", "/a b/y.txt"):
        await use("write_file", path=path, content=path)
    assert await use.paths() == ["/a/", "/a b/", "/a.txt", "/a0.txt"]
    assert await use.paths("/a/") == ["/a/b/", "/a/x.txt"]
    assert (await use("list_directory", path="/a"))["count"] == 2
    with pytest.raises(InvalidInput, match="is a file: use read_file"):
        await use("list_directory", path="/a.txt")
    with pytest.raises(NotFound, match="no directory /none"):
        await use("list_directory", path="/none")


async def test_path_cannot_be_both_a_file_and_a_directory(hands: Callable[..., Hands]) -> None:
    use = hands()
    await use("write_file", path="/a/b.txt", content="")
    with pytest.raises(InvalidInput, match="/a is a directory: give"):
        await use("write_file", path="/a", content="")
    with pytest.raises(InvalidInput, match="/a/b.txt is a file, not a directory"):
        await use("write_file", path="/a/b.txt/c/d.txt", content="")
    with pytest.raises(InvalidInput, match="is a directory: use list_directory"):
        await use("read_file", path="/a")
    with pytest.raises(NotFound, match="no file /none"):
        await use("read_file", path="/none")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/../etc/passwd", r"contains '\.\.'"),
        ("/a/../b", r"contains '\.\.'"),
        ("/a\0b", "control characters"),
        ("/a\ud800", "control characters"),
        ("/" + "x" * 1_024, "1,025 bytes"),
        ("/", "is a directory"),
        ("/a/", "is a directory"),
        ("/sk-ant-api03-abcdefghijklmnop0123456789", "looks like a secret"),
    ],
)
async def test_invalid_path_is_rejected(hands: Callable[..., Hands], path: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        await hands()("write_file", path=path, content="")


async def test_stat_distinguishes_files_directories_and_missing_paths(hands: Callable[..., Hands]) -> None:
    use = hands()
    await use("write_file", path="/a/b.txt", content="12345")
    file = await use("stat_file", path="/a/b.txt")
    assert file["created_at"] == file["updated_at"] is not None
    names = ("name", "exists", "is_directory", "is_readonly", "size_bytes", "version")
    assert [file[name] for name in names] == ["b.txt", True, False, False, 5, 1]
    for path, exists in (("/a", True), ("/", True), ("/none", False)):
        found = await use("stat_file", path=path)
        assert (found["exists"], found["is_directory"], found["size_bytes"]) == (exists, exists, 0)


async def test_directory_with_files_is_deleted_only_with_recursive(hands: Callable[..., Hands]) -> None:
    use = hands()
    for path in ("/a/b/c.txt", "/a/d.txt", "/ab.txt"):
        await use("write_file", path=path, content="")
    with pytest.raises(InvalidInput, match="recursive=true"):
        await use("delete_file", path="/a")
    assert await use("delete_file", path="/a", recursive=True) == {"path": "/a", "deleted": True, "files_deleted": 2}
    assert (await use("delete_file", path="/a"))["deleted"] is False
    assert (await use("delete_file", path="/ab.txt"))["deleted"] is True
    assert (await use("write_file", path="/a", content="a file now"))["created"] is True
    assert (await use("delete_file", path="/", recursive=True))["files_deleted"] == 1
    assert await use.paths() == []


async def test_grep_finds_lines_by_pattern_and_path(hands: Callable[..., Hands]) -> None:
    use = hands()
    await use("write_file", path="/src/a.py", content="import os\nx = 1\nimport re\n")
    await use("write_file", path="/src/deep/b.py", content="import json\n")
    await use("write_file", path="/notes.txt", content="import nothing\n")
    await use("write_file", path="/c.bin", content=base64.b64encode(b"import \0").decode(), encoding="base64")
    found = await use("grep_files", pattern=r"^import (os|json)$")
    assert found["matches"] == [
        {"path": "/src/a.py", "line": 1, "text": "import os"},
        {"path": "/src/deep/b.py", "line": 1, "text": "import json"},
    ]
    assert (found["pattern"], found["match_count"], found["searched_files"]) == (r"^import (os|json)$", 2, 3)
    for where, count in (("*.txt", 1), ("*.py", 3), ("/src/*", 3), ("/src/deep/*", 1), ("src/a*", 2), ("/none/*", 0)):
        assert (await use("grep_files", pattern="import", path_pattern=where))["match_count"] == count, where
    for pattern in ("(", "(?=a)", r"(a)\1"):
        with pytest.raises(InvalidInput, match=r"cannot be used: .*without look-ahead"):
            await use("grep_files", pattern=pattern)
    with pytest.raises(InvalidInput, match="2,001 characters"):
        await use("grep_files", pattern="x" * 2_001)


async def test_pattern_that_python_matches_for_ever_is_matched(hands: Callable[..., Hands]) -> None:
    use = hands()
    await use("write_file", path="/a.txt", content="a" * 60 + "b")
    assert (await use("grep_files", pattern="(a+)+$"))["match_count"] == 0
    assert (await use("grep_files", pattern="(a+)+b$"))["match_count"] == 1


async def test_lines_are_counted_as_in_the_workspace(hands: Callable[..., Hands]) -> None:
    use = hands()
    await use("write_file", path="/a.txt", content="one\u2028still one\r\ntwo\rthree")
    matches = (await use("grep_files", pattern="one$|three"))["matches"]
    assert [(each["line"], each["text"]) for each in matches] == [(1, "one\u2028still one"), (3, "three")]


async def test_truncated_results_are_marked(hands: Callable[..., Hands]) -> None:
    use = hands()
    await use("write_file", path="/long.txt", content="x\n" * 150 + "y" * 1_000)
    found = await use("grep_files", pattern="x")
    assert (len(found["matches"]), found["match_count"]) == (100, 150)
    assert "first 100" in found["truncated"]
    assert len((await use("grep_files", pattern="y"))["matches"][0]["text"]) == 300


async def test_size_and_number_of_files_are_limited(hands: Callable[..., Hands]) -> None:
    use = hands(max_file_bytes=4, max_files=2)
    with pytest.raises(InvalidInput, match=r"6 bytes, more than the 4.*max_file_bytes"):
        await use("write_file", path="/a", content="äöü")
    with pytest.raises(InvalidInput, match="5 bytes"):
        await use("write_file", path="/a", content=base64.b64encode(b"12345").decode(), encoding="base64")
    for path in ("/a", "/b", "/a"):
        await use("write_file", path=path, content="1234")
    with pytest.raises(
        InvalidInput, match=r"limit of the session reached .2.: delete some with delete_file.*max_files"
    ):
        await use("write_file", path="/c", content="")
    await use("delete_file", path="/a")
    assert (await use("write_file", path="/c", content=""))["created"] is True


async def test_write_with_if_version_replaces_only_that_version(hands: Callable[..., Hands]) -> None:
    use = hands()
    await use("write_file", path="/a", content="1", if_version=0)
    await use("write_file", path="/a", content="2", if_version=1)
    for stale in (0, 1, 7):
        with pytest.raises(InvalidInput, match=f"has version 2, not {stale}"):
            await use("write_file", path="/a", content="3", if_version=stale)
    assert (await use("read_file", path="/a"))["content"] == "2"


async def test_secrets_are_not_stored(hands: Callable[..., Hands]) -> None:
    use = hands()
    secret = "sk-ant-api03-abcdefghijklmnop0123456789"
    written = await use("write_file", path="/a", content=f"key: {secret}\x1b[0m\r\n")
    read = await use("read_file", path="/a")
    assert (written["redacted"], read["content"]) == (True, "key: [redacted]\x1b[0m\r\n")
    assert written["size_bytes"] == read["size_bytes"]
    with pytest.raises(InvalidInput, match="looks like a secret"):
        await use("write_file", path="/b", content=base64.b64encode(secret.encode()).decode(), encoding="base64")
    with pytest.raises(InvalidInput, match="lone surrogates"):
        await use("write_file", path="/b", content="\ud800")


async def test_read_only_task_may_not_call_writing_tools(hands: Callable[..., Hands]) -> None:
    tools = hands().tools
    assert list(tools) == ["read_file", "write_file", "list_directory", "grep_files", "delete_file", "stat_file"]
    assert [name for name, tool in tools.items() if tool.writes] == ["write_file", "delete_file"]


# ── in the store ────────────────────────────────────────────────────────────────────────────────────────


async def test_processes_share_files_only_within_a_session(swarm: SwarmRig) -> None:
    one, other, stranger = process(swarm), process(swarm), process(swarm, "s2")
    await one("write_file", path="/a/b.txt", content="shared")
    assert (await other("read_file", path="/a/b.txt"))["content"] == "shared"
    assert await stranger.paths() == []
    assert (await stranger("grep_files", pattern="."))["searched_files"] == 0
    assert (await stranger("write_file", path="/a/b.txt", content="mine"))["created"] is True
    await stranger("delete_file", path="/", recursive=True)
    assert (await other("read_file", path="/a/b.txt"))["content"] == "shared"
    await other("delete_file", path="/a/b.txt")
    assert (await other("write_file", path="/a", content="a file"))["created"] is True
    assert await one.paths() == ["/a"]


@dataclass(frozen=True)
class Meddled(StoreShelf):
    """A store shelf on which other agents write between a read and the following write."""

    meddlers: list[Callable[[], Awaitable[Any]]] = field(default_factory=list[Callable[[], Awaitable[Any]]])

    async def put(self, path: str, content: str | bytes, before: StoredFile | None) -> int:
        if self.meddlers:
            await self.meddlers.pop()()
        return await super().put(path, content, before)


def meddled(swarm: SwarmRig, times: int = 1) -> SessionFiles:
    theirs = partial(process(swarm), "write_file", path="/a", content="theirs")
    return SessionFiles(Meddled(swarm.store, "s1", [theirs] * times), SessionFilesConfig())


@pytest.mark.parametrize("earlier", [0, 1])
async def test_concurrent_writers_both_succeed_and_the_later_one_is_notified(swarm: SwarmRig, earlier: int) -> None:
    for _ in range(earlier):
        await process(swarm)("write_file", path="/a", content="first")
    written = await meddled(swarm).write_file("/a", "ours")
    assert (written["version"], written["created"]) == (earlier + 2, False)
    assert "another agent" in written["overtook"]
    with pytest.raises(InvalidInput, match="read it again"):
        await meddled(swarm).write_file("/a", "ours", if_version=earlier + 2)
    assert (await process(swarm)("read_file", path="/a"))["content"] == "theirs"


async def test_write_fails_after_too_many_concurrent_changes(swarm: SwarmRig) -> None:
    with pytest.raises(Conflict, match="too many concurrent writers"):
        await meddled(swarm, WRITE_ATTEMPTS).write_file("/a", "ours")


@pytest.mark.parametrize("earlier", [0, 1])
async def test_own_write_with_a_lost_response_is_not_mistaken_for_another_writer(swarm: SwarmRig, earlier: int) -> None:
    use = Hands(CapabilityContext("s1", Path(), swarm.clock, swarm.store))
    for _ in range(earlier):
        await use("write_file", path="/a", content="first")
    async with time_flows(swarm):
        unreliable(swarm, ("after", google.ServiceUnavailable("cut")))
        written = await use("write_file", path="/a", content="ours", if_version=earlier)
    assert written == {"path": "/a", "size_bytes": 4, "created": not earlier, "version": earlier + 1}


async def test_stored_document_describes_the_file(swarm: SwarmRig) -> None:
    await process(swarm)("write_file", path="/docs/a.txt", content="hello")
    [kept] = await swarm.store.query(Query(FILES))
    data = dict(kept.data)
    assert data.pop("created_at") == data.pop("updated_at")
    assert data == {
        "session_hash": "s1",
        "path": "/docs/a.txt",
        "folder": "/docs",
        "name": "a.txt",
        "content": "hello",
        "encoding": "text",
        "size_bytes": 5,
        "version": 1,
    }


async def test_secret_known_only_to_the_store_is_redacted(swarm: SwarmRig) -> None:
    store = FirestoreStore(swarm.connect(), swarm.clock, Redactor(["hunter2-is-my-password"]))
    use = Hands(CapabilityContext("s1", Path(), swarm.clock, store))
    await use("write_file", path="/a", content="it is hunter2-is-my-password")
    read = await use("read_file", path="/a")
    assert (read["content"], read["size_bytes"]) == ("it is [redacted]", 16)


async def test_many_files_are_listed_and_searched_page_by_page(
    swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fireswarm.capabilities.session_files.capability.PAGE", 3)
    use = process(swarm)
    paths = [f"/{folder}/{number}.txt" for folder in "ab" for number in range(7)] + ["/c.txt", "/d.txt", "/e.txt"]
    for path in paths:
        await use("write_file", path=path, content="found")
    assert (await use("grep_files", pattern="found"))["match_count"] == len(paths)
    before = swarm.store.usage.copy()
    shared = Hands(CapabilityContext("s1", Path(), swarm.clock, swarm.store))
    assert await shared.paths() == ["/a/", "/b/", "/c.txt", "/d.txt", "/e.txt"]
    assert swarm.store.usage.minus(before).reads == 3 * 3 + 1, "deeper files are skipped, not read"
    monkeypatch.setattr("fireswarm.capabilities.session_files.capability.MAX_ENTRIES", 2)
    cut = await shared("list_directory")
    assert (cut["count"], cut["truncated"]) == (2, "only the first 2 entries are shown")
    monkeypatch.setattr("fireswarm.capabilities.session_files.capability.MAX_SEARCHED_BYTES", 20)
    assert "narrow path_pattern" in (await shared("grep_files", pattern="found"))["stopped"]
    assert (await shared("delete_file", path="/", recursive=True))["files_deleted"] == len(paths)


PARTS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="/"), min_size=1, max_size=8
).filter(lambda part: part not in (".", ".."))
PATHS = st.lists(PARTS, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))
CONTENTS = st.text(max_size=200) | st.binary(max_size=200)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=PATHS, content=CONTENTS)
async def test_written_content_is_read_back_unchanged(path: str, content: str | bytes) -> None:
    encoding = "text" if isinstance(content, str) else "base64"
    given_content = content if isinstance(content, str) else base64.b64encode(content).decode()
    async with open_test_swarm() as swarm:
        use = process(swarm)
        written = await use("write_file", path=path, content=given_content, encoding=encoding)
        read = await process(swarm)("read_file", path=path)
        assert (read["content"], read["encoding"], read["path"]) == (given_content, encoding, written["path"])
        assert read["size_bytes"] == len(content.encode() if isinstance(content, str) else content)
        entry = (await use("list_directory", path=read["path"].rpartition("/")[0]))["entries"][0]
        assert entry["path"] == read["path"]


# ── in a folder ─────────────────────────────────────────────────────────────────────────────────────────


async def test_agent_without_a_store_keeps_files_in_its_folder(swarm: SwarmRig, tmp_path: Path) -> None:
    one, other = (Hands(CapabilityContext(session, tmp_path, swarm.clock)) for session in ("s1", "s2"))
    await one("write_file", path="/a/b.txt", content="kept")
    [document] = (tmp_path / ".fireswarm" / "files").glob("*/*")
    assert json.loads(document.read_text())["content"] == "kept"
    assert await other.paths() == []


async def test_folder_that_is_a_link_to_elsewhere_is_rejected(swarm: SwarmRig, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / ".fireswarm").symlink_to(tmp_path / "outside")
    with pytest.raises(ConfigError, match="symbolic link"):
        Hands(CapabilityContext("s1", tmp_path / "work", swarm.clock))


async def test_folder_shelf_refuses_a_write_based_on_an_outdated_version(tmp_path: Path) -> None:
    shelf = FolderShelf(tmp_path, "s1")
    await shelf.put("/a", "1", None)
    with pytest.raises(Conflict):
        await shelf.put("/a", "2", None)
