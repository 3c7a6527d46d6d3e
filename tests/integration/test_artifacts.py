"""The artifacts of a task: opened by command, downloaded over HTTP, and found again in a copied folder."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest

import fireswarm as fs
from fireswarm.api.routes import artifacts as route
from fireswarm.cli.watch import open_artifact
from fireswarm.contracts.skills.artifact import STORED_VALUE, Artifact
from fireswarm.errors import NotFound
from fireswarm.storage.blobs import FsspecBlobs
from fireswarm.swarm.records.artifacts import safe_file_name
from tests.integration.test_cli import swarm as command
from tests.support.api import Api, open_api
from tests.support.swarm import done, open_test_swarm


@fs.skill("write-report", "Writes a report and a table.")
def write_report(request: fs.SkillRequest) -> fs.SkillResult:
    (request.workdir / "report.md").write_text("# Report\n")
    files = fs.Artifact(type="report", name="report.md", uri="workdir:report.md", mime="text/markdown")
    value = fs.Artifact(type="table", name="table", value={"rows": [1, 2]})
    answer = fs.Artifact(type="answer", name="answer", value="long " * 5_000)
    return fs.SkillResult(summary="done", artifacts=(files, value, answer))


@pytest.fixture
def copied(tmp_path: Path) -> tuple[Path, str]:
    """Copy a swarm folder with a finished task and delete the original. Returns the copy and the task's id."""
    original, copy = tmp_path / "original", tmp_path / "elsewhere" / "copy"
    original.mkdir()

    async def work() -> str:
        async with fs.Swarm.local(roles={"writer": [write_report]}, root=original, store="embedded") as swarm:
            task = await swarm.submit("write", role="writer")
            return (await swarm.wait(task)).task_id

    task_id = anyio.run(work)
    shutil.copytree(original, copy)
    shutil.rmtree(original)
    return copy, task_id


def test_copied_folder_shows_and_opens_its_artifacts(copied: tuple[Path, str]) -> None:
    root, task_id = copied
    report = next(root.rglob("report.md"))
    assert command(root, "open", task_id).stdout == f"{report}\n"
    assert command(root, "open", task_id[:8], "report.md").stdout == f"{report}\n"
    shown = command(root, "show", task_id).stdout
    assert f"report report.md: file://{report}" in shown
    assert "long " * 5_000 in shown
    [listed] = json.loads(command(root, "tasks", "--json").stdout)
    for task in (json.loads(command(root, "show", task_id, "--json").stdout)["task"], listed):
        assert [item["uri"] for item in task["result"]["artifacts"] if item["name"] == "report.md"] == [report.as_uri()]
    submitted = command(root, "artifacts", task_id, "--to", "out")
    assert submitted.returncode == 0, submitted.stderr
    assert (root / "out" / "report.md").read_text() == "# Report\n"


def test_value_is_written_to_a_file_and_opened(copied: tuple[Path, str]) -> None:
    root, task_id = copied
    path = Path(command(root, "open", task_id, "table").stdout.strip())
    assert path == root / ".fireswarm" / "artifacts" / task_id / "table.json"
    assert '"rows"' in path.read_text()
    assert Path(command(root, "open", task_id, "answer").stdout.strip()).read_text() == "long " * 5_000


def test_unknown_artifact_names_those_of_the_task(copied: tuple[Path, str]) -> None:
    root, task_id = copied
    refused = command(root, "open", task_id, "nothing.md")
    assert refused.returncode == 1
    assert "it has: report.md, table, answer" in refused.stderr


@pytest.mark.parametrize(("name", "opened"), [("report.md", True), ("table", True), ("run.desktop", False)])
def test_only_files_that_no_desktop_runs_are_opened(
    name: str, opened: bool, copied: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, task_id = copied
    started: list[list[str]] = []

    def start(words: list[str], **_: Any) -> None:
        started.append(words)

    def desktop_file(*_: Any) -> Path:
        return root / name

    monkeypatch.setattr(open_artifact.subprocess, "run", start)
    monkeypatch.setattr(open_artifact, "_opener", lambda: "/usr/bin/opener")
    monkeypatch.setattr(open_artifact.console, "_force_terminal", True)
    if name == "run.desktop":
        monkeypatch.setattr(open_artifact, "_local_file", desktop_file)
    printed = command(root, "open", task_id, "report.md" if name == "run.desktop" else name).stdout.strip()
    assert started == ([["/usr/bin/opener", printed]] if opened else [])


@pytest.mark.anyio
async def test_moved_blob_is_found_by_the_end_of_its_path(tmp_path: Path) -> None:
    uri = await FsspecBlobs(str(tmp_path / "a")).put("s/t/deep/x.txt", b"x")
    (tmp_path / "a").rename(tmp_path / "b")
    moved = FsspecBlobs(str(tmp_path / "b"))
    assert await moved.get(uri) == b"x"
    assert await moved.size(uri) == 1
    assert moved.locate(uri) == f"file://{tmp_path}/b/s/t/deep/x.txt"
    for elsewhere in ("file:///nowhere/x.txt", "file:///../../s/t/deep/x.txt", f"file:///{'x' * 5_000}"):
        assert moved.locate(elsewhere) == elsewhere
        with pytest.raises((fs.errors.NotFound, fs.errors.StoreError)):
            await moved.get(elsewhere)


@pytest.mark.anyio
async def test_copied_folder_has_its_own_files_while_the_original_is_there(tmp_path: Path) -> None:
    original = FsspecBlobs(str(tmp_path / "a"))
    name = "s/8ae1a292-0b1c-4d2e-8f3a-0123456789ab/deep/x.txt"
    uri = await original.put(name, b"as copied")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    await original.put(name, b"changed")
    copied = FsspecBlobs(str(tmp_path / "b"))
    assert (await copied.get(uri), await original.get(uri)) == (b"as copied", b"changed")
    assert copied.locate(uri) == f"file://{tmp_path}/b/{name}"
    (tmp_path / "project" / "deep").mkdir(parents=True)
    (tmp_path / "project" / "deep" / "x.txt").write_text("a user's own")
    await copied.put("deep/x.txt", b"another")
    own = f"file://{tmp_path}/project/deep/x.txt"
    assert await copied.get(own, anywhere=True) == b"a user's own"
    with pytest.raises(NotFound, match="no other file is read"):
        await copied.get(own)


@pytest.mark.anyio
async def test_store_holds_only_what_is_below_the_folder(tmp_path: Path) -> None:
    blobs = FsspecBlobs(str(tmp_path / "blobs"))
    inside = await blobs.put("s1/t/x.txt", b"x")
    (tmp_path / "secret").write_text("x")
    (tmp_path / "blobs" / "s1" / "link").symlink_to(tmp_path / "secret")
    assert blobs.holds(inside, "s1")
    for outside in (f"{tmp_path}/secret", f"{tmp_path}/blobs/s1/link", f"{tmp_path}/blobs/s1/../../secret"):
        assert not blobs.holds(f"file://{outside}", "s1")
    assert not blobs.holds(inside, "s2")
    remote = FsspecBlobs("memory://bucket")
    assert remote.holds(await remote.put("s1/x", b"x"), "s1")
    assert not remote.holds("memory://other/bucket/s1/x", "s1")


@pytest.fixture
async def api() -> AsyncGenerator[Api]:
    async with open_test_swarm(session="s1") as swarm, open_api(swarm) as opened:
        yield opened


async def task_with(api: Api, *artifacts: Artifact) -> str:
    task = await api.swarm.submit()
    await api.swarm.settle(await api.swarm.claim_one(), done(artifacts=artifacts))
    return f"/v1/tasks/{task.task_id}/artifacts"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("artifact", "content", "media_type", "file_name"),
    [
        ({"name": "report.md", "mime": "text/markdown"}, b"# R\n", "text/markdown; charset=utf-8", "report.md"),
        ({"name": "page.html"}, b"<script>", "text/html; charset=utf-8", "page.html"),
        ({"name": "a/deep/x.bin", "mime": "bad\r\nX: y"}, b"\x00", "application/octet-stream", "x.bin"),
        (
            {"name": "value", "value": {"rows": [1]}},
            b'{\n  "rows": [\n    1\n  ]\n}\n',
            "application/json",
            "value.json",
        ),
        ({"name": "answer", "value": "hello"}, b"hello", "text/plain; charset=utf-8", "answer.txt"),
        ({"name": "big", "mime": STORED_VALUE}, b'"hello"', "text/plain; charset=utf-8", "big.txt"),
    ],
)
async def test_artifact_is_downloaded_with_its_media_type_and_a_safe_name(
    artifact: dict[str, Any], content: bytes, media_type: str, file_name: str, api: Api
) -> None:
    if "value" not in artifact:
        artifact = {**artifact, "uri": await api.swarm.core.blobs.put("s1/t/x", content)}
    path = await task_with(api, Artifact(type="x", **artifact))
    answer = await api.call("GET", f"{path}/{artifact['name']}")
    assert answer.status_code == 200, answer.text
    assert answer.content == (b"hello" if artifact["name"] == "big" else content)
    assert answer.headers["content-type"] == media_type
    assert answer.headers["content-disposition"] == f'attachment; filename="{file_name}"'
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.anyio
async def test_missing_foreign_and_large_artifacts_are_problems(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    blobs = api.swarm.core.blobs
    path = await task_with(
        api,
        Artifact(type="x", name="mine", uri=await blobs.put("s1/t/x", b"12345")),
        Artifact(type="x", name="other", uri=await blobs.put("s2/t/x", b"x")),
        Artifact(type="x", name="system", uri=Path(os.__file__).as_uri()),
        Artifact(type="x", name="gone", uri=(await blobs.put("s1/t/y", b"x")).replace("/y", "/z")),
    )
    for name in ("nothing", "other", "system", "gone"):
        assert await api.problem("GET", f"{path}/{name}") == (404, "not_found"), name
    assert await api.problem("GET", "/v1/tasks/unknown/artifacts/x") == (404, "not_found")
    monkeypatch.setattr(route, "MAX_ARTIFACT_BYTES", 4)
    assert await api.problem("GET", f"{path}/mine") == (422, "invalid_input")


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ('a"b\r\nSet-Cookie: x', "a_b_Set-Cookie_x"),
        ("../../etc/passwd", "passwd"),
        ("..\\x.md", "x.md"),
        (".bashrc", "bashrc"),
        ("Übersicht.md", "bersicht.md"),
        ("///", "artifact"),
        ("x" * 500 + ".md", "x" * 97 + ".md"),
    ],
)
def test_file_name_is_plain(name: str, safe: str) -> None:
    assert safe_file_name(name) == safe
