"""The output folder: whatever a command leaves there, good files become artifacts, and no other file is touched."""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fireswarm.capabilities.workspace import outputs
from fireswarm.capabilities.workspace.artifacts import ArtifactWriter, artifact_tools, merge_outputs
from fireswarm.capabilities.workspace.outputs import check_artifact_name, collect_outputs
from fireswarm.capabilities.workspace.writing import workspace_tools
from fireswarm.contracts.skills.artifact import Artifact
from fireswarm.contracts.skills.tool import ToolAnswer
from fireswarm.errors import InvalidInput
from fireswarm.redaction import Redactor

pytestmark = pytest.mark.anyio

SECRET = "ghp_" + "A1b2C3d4E5f6" * 3
CLEAN = Redactor().text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "outputs"
    made.mkdir()
    (tmp_path / "outside.txt").write_text(f"token {SECRET}\n")
    return made


@pytest.fixture(params=["copied", "in place"])
def into(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    if request.param == "in place":
        return None
    (tmp_path / "copies").mkdir()
    return tmp_path / "copies"


ODD: dict[str, tuple[Callable[[Path], None], str]] = {
    "a link to a file": (lambda f: (f / "odd").symlink_to(f.parent / "outside.txt"), "odd: a link"),
    "a link to a folder": (lambda f: (f / "odd").symlink_to(f.parent), "odd: a link"),
    "a broken link": (lambda f: (f / "odd").symlink_to("/nowhere"), "odd: a link"),
    "a circle of links": (lambda f: (f / "odd").symlink_to(f / "odd"), "odd: a link"),
    "a hard link": (lambda f: os.link(f.parent / "outside.txt", f / "odd"), "odd: a hard link"),
    "a pipe": (lambda f: os.mkfifo(f / "odd"), "odd: not a regular file"),
    "a socket": (lambda f: _socket(f / "odd"), "odd: "),
    "a hidden file": (lambda f: (f / ".odd").touch(), ".odd: a hidden file"),
    "a sparse file": (lambda f: _sparse(f / "odd"), "odd: 1,000,000,000,000 bytes"),
    "too deep": (lambda f: _deep(f, 12), "folders deep"),
}


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def _sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 10**12)


def _deep(folder: Path, levels: int) -> None:
    for _ in range(levels):
        folder = folder / "d"
        folder.mkdir()
    (folder / "odd").write_text("x")


@pytest.mark.parametrize("odd", ODD)
def test_odd_file_is_left_out_with_the_reason_and_the_others_are_taken(
    odd: str, folder: Path, into: Path | None
) -> None:
    make, reason = ODD[odd]
    make(folder)
    (folder / "a.txt").write_text("a")
    (folder / "z.md").write_text("z")
    outside = (folder.parent / "outside.txt").read_bytes()
    found = collect_outputs(folder, CLEAN, into)
    assert [(file.name, file.path.read_text()) for file in found.files] == [("a.txt", "a"), ("z.md", "z")]
    assert reason in found.note and SECRET not in found.note
    assert (folder.parent / "outside.txt").read_bytes() == outside


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_device_is_left_out(folder: Path, into: Path | None) -> None:
    os.mknod(folder / "null", 0o20666, os.makedev(1, 3))
    (folder / "a.txt").write_text("a")
    found = collect_outputs(folder, CLEAN, into)
    assert ([file.name for file in found.files], found.note) == (
        ["a.txt"],
        "Left out of the artifacts: null: not a regular file.",
    )


def test_folder_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.txt").write_text("a")
    (tmp_path / "outputs").symlink_to(tmp_path / "real")
    assert collect_outputs(tmp_path / "outputs", CLEAN).files == []


def test_secrets_are_removed_from_text_only(folder: Path, into: Path | None) -> None:
    (folder / "a.txt").write_text(f"token {SECRET}\n")
    (folder / "b.bin").write_bytes(b"\xff\xfe" + SECRET.encode())
    text, binary = collect_outputs(folder, CLEAN, into).files
    content = text.path.read_bytes()
    assert SECRET.encode() not in content and content.startswith(b"token ")
    assert (text.size, text.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    assert binary.path.read_bytes() == b"\xff\xfe" + SECRET.encode()
    assert (SECRET in (folder / "a.txt").read_text()) == (into is not None)


def test_numbers_of_files_and_bytes_are_bounded(
    folder: Path, into: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "MAX_TOTAL_BYTES", 1_000)
    (folder / "0").write_bytes(b"x" * 1_001)
    (folder / "1").write_bytes(b"x" * 600)
    (folder / "2").write_bytes(b"x" * 600)
    (folder / "3").write_bytes(b"x" * 400)
    for number in range(200):
        (folder / f"many-{number:03d}").touch()
    found = collect_outputs(folder, CLEAN, into)
    assert [file.name for file in found.files][:3] == ["1", "3", "many-000"]
    assert (len(found.files), found.left_out_count) == (outputs.MAX_FILES, 104)
    assert found.note.endswith("more than 100 files; 84 more.")


def test_number_of_entries_is_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "MAX_ENTRIES", 3)
    for number in range(5):
        (folder / f"{number}").touch()
    found = collect_outputs(folder, CLEAN)
    assert len(found.files) == 3 and "3: the folder has more than 3 entries" in found.note


def test_odd_names_become_safe_and_stay_apart(folder: Path, into: Path | None) -> None:
    for name in (
        b"a\nb.txt",
        b"a\tb.txt",
        b"a_b.txt",
        b"\xff\xfe.txt",
        "ü\u202e.md".encode(),
        b"x:y|z",
        b"end. ",
        b"-rf",
    ):
        (Path(os.fsdecode(os.fsencode(folder) + b"/" + name))).write_text("x")
    (folder / ("n" * 251 + ".txt")).write_text("x")
    names = [file.name for file in collect_outputs(folder, CLEAN, into).files]
    assert {"-rf", "a_b-2.txt", "a_b-3.txt", "a_b.txt", "end", "x_y_z", "ü_.md", "??.txt".replace("?", "_")} <= set(
        names
    )
    assert len(set(names)) == 9
    for name in names:
        assert check_artifact_name(name) == name


@given(st.text(min_size=1, max_size=300))
def test_every_name_is_safe_or_refused(name: str) -> None:
    try:
        check_artifact_name(name)
    except InvalidInput:
        return
    path = Path("/outputs") / name
    assert Path(os.path.normpath(path)) == path and path.is_relative_to("/outputs/")
    assert name.isprintable() and not any(part.startswith(".") for part in name.split("/"))


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../a", "a/../b", "/etc/passwd", ".env", "a/.git/b", "a//b", "a/", "a\0b", "a\nb", "a\\b", "C:a",
     "x" * 201, "a/" * 9 + "b", "con|", "a ", "\u202egpj.exe", "é" * 100],
)  # fmt: skip
async def test_bad_name_is_refused(name: str, folder: Path) -> None:
    before = sorted(folder.parent.rglob("*"))
    with pytest.raises(InvalidInput):
        await writer(folder)({"name": name, "content": "x"})
    assert sorted(folder.parent.rglob("*")) == before


def writer(
    folder: Path, refusal: Callable[[str], str] = lambda path: ""
) -> Callable[[Mapping[str, Any]], Awaitable[Any]]:
    return artifact_tools(ArtifactWriter(folder.parent, folder, CLEAN, refusal=refusal))["write_artifact"].run


async def test_text_is_stored_without_secrets_and_replaced_by_the_same_name(folder: Path) -> None:
    write = writer(folder)
    await write({"name": "charts/a.md", "content": "old"})
    answer: ToolAnswer = await write({"name": "charts/a.md", "content": f"new {SECRET}", "type": "chart"})
    content = (folder / "charts" / "a.md").read_bytes()
    assert content.startswith(b"new ") and SECRET.encode() not in content
    [artifact] = answer.artifacts
    assert (artifact.type, artifact.name, artifact.mime) == ("chart", "charts/a.md", "text/markdown")
    assert (artifact.size_bytes, artifact.sha256) == (len(content), hashlib.sha256(content).hexdigest())


async def test_file_is_copied_from_the_workspace_or_the_output_folder(folder: Path) -> None:
    (folder.parent / "data.bin").write_bytes(b"\0\xff")
    (folder / "b.txt").write_text("b")
    write = writer(folder)
    await write({"name": "a.bin", "path": "data.bin"})
    await write({"name": "c.txt", "path": "$OUTPUT_DIR/b.txt"})
    await write({"name": "d.txt", "path": str(folder / "b.txt")})
    assert (folder / "a.bin").read_bytes() == b"\0\xff"
    assert (folder / "c.txt").read_text() == (folder / "d.txt").read_text() == "b"


@pytest.mark.parametrize(
    ("given_input", "reason"),
    [
        ({"name": "a"}, "either content"),
        ({"name": "a", "content": "x", "path": "y"}, "either content"),
        ({"name": "a", "path": "/etc/passwd"}, "outside the workspace"),
        ({"name": "a", "path": "../outside"}, "outside the workspace"),
        ({"name": "a", "path": "link"}, "outside the workspace"),
        ({"name": "a", "path": "gone"}, "does not exist"),
        ({"name": "a", "path": "outputs"}, "is a folder"),
        ({"name": "a", "path": "secret.txt"}, "may not be read: it is denied"),
        ({"name": "a", "content": "x" * 10_000_001}, "10,000,000 are allowed"),
        ({"name": "a", "content": "x", "type": "A type"}, "type"),
        ({"name": "link/a", "content": "x"}, "link is not a folder"),
    ],
)
async def test_bad_artifact_is_refused(given_input: dict[str, str], reason: str, folder: Path) -> None:
    (folder.parent / "link").symlink_to("/etc/passwd")
    (folder / "link").symlink_to("/tmp")
    write = writer(folder, refusal=lambda path: "it is denied" if "secret" in path else "")
    with pytest.raises(InvalidInput, match=reason):
        await write(given_input)
    assert not (folder / "a").exists()


async def test_large_file_is_refused(folder: Path) -> None:
    with (folder.parent / "big").open("wb") as file:
        file.truncate(50_000_001)
    with pytest.raises(InvalidInput, match="more than 50,000,000 bytes"):
        await writer(folder)({"name": "a", "path": "big"})


async def test_task_that_may_change_nothing_writes_to_its_output_folder(tmp_path: Path, folder: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.py").write_text("x = 1\n")
    tools = workspace_tools(project, folder, writable=False)
    for path in ("report.md", "$OUTPUT_DIR/b.md", "${OUTPUT_DIR}/deep/c.md", f"{folder}/d.md"):
        await tools["write_file"].run({"path": path, "content": "x\n"})
    names = [file.name for file in collect_outputs(folder, CLEAN).files]
    assert sorted(names) == ["b.md", "d.md", "deep/c.md", "report.md"]
    await tools["edit_file"].run({"path": "report.md", "old_text": "x", "new_text": "y"})
    assert (await tools["read_file"].run({"path": "$OUTPUT_DIR/report.md"})).endswith("y")
    assert "x = 1" in await tools["read_file"].run({"path": "a.py"})
    for path in (f"{project}/a.py", f"file://{project}/a.py", "../project/a.py", f"{folder}/../project/a.py", "/etc/x"):
        with pytest.raises(InvalidInput):
            await tools["write_file"].run({"path": path, "content": "bad"})
    with pytest.raises(InvalidInput, match="a.py does not exist"):
        await tools["edit_file"].run({"path": "a.py", "old_text": "x", "new_text": "y"})
    assert [path.name for path in project.iterdir()] == ["a.py"] and (project / "a.py").read_text() == "x = 1\n"


def test_collected_file_replaces_the_stored_artifact_and_keeps_its_type() -> None:
    def made(uri: str, kind: str, size: int) -> Artifact:
        return Artifact(type=kind, name=uri, uri=uri, size_bytes=size)

    value = Artifact(type="answer", name="answer", value="x")
    earlier = [made("u:a", "report", 1), made("u:b", "chart", 2), made("u:b", "table", 3), value]
    merged = merge_outputs(earlier, [made("u:a", "file", 9), made("u:c", "file", 4)])
    assert [(each.uri, each.type, each.size_bytes) for each in merged] == [
        ("u:b", "table", 3),
        (None, "answer", None),
        ("u:a", "report", 9),
        ("u:c", "file", 4),
    ]
