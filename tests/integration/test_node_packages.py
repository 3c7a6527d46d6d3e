"""Nodes come as npm makes them: as a tarball too, and in TypeScript, for which a transpiler has to be installed."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from pathlib import Path

import pytest

from fireswarm.contracts.swarm.task import TaskStatus
from fireswarm.errors import InvalidInput
from fireswarm.pipelines import find_transpiler, listed_nodes, unpack
from fireswarm.pipelines import packages as npm
from fireswarm.settings.packaged import packaged_path
from tests.support.pipeline import advised, family, files, submit, work
from tests.support.swarm import SwarmRig

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="nodes are run by Node.js, which is not here")
pytestmark = [pytest.mark.anyio]

SHELF = packaged_path("pipelines") / "node" / "demo" / "n8n-nodes-shelf"

NODE = """import type { IExecuteFunctions, INodeType } from 'n8n-workflow';
import { path } from './paths';
export class Tiny implements INodeType {
    description = { displayName: 'Tiny', name: 'tiny', version: 1, properties: [
        { name: 'operation', type: 'options', options: [{ name: 'Add', value: 'add' }], default: '' },
        { displayName: 'Title', name: 'title', type: 'string', required: true, default: '' } ] };
    async execute(this: IExecuteFunctions) {
        const body = { title: this.getNodeParameter('title', 0) };
        const made = await this.helpers.httpRequest({ method: 'POST', url: `https://tiny.example/v1${path}`, body });
        return [this.helpers.returnJsonArray(made)];
    }
}
"""

TRANSPILER = """exports.transformSync = (code) => ({ code: code
    .replace(/import type .*/g, '')
    .replace(/import \\{ (\\w+) \\} from '(.*)';/g, "const { $1 } = require('$2');")
    .replace(/export class (\\w+) implements \\w+/g, 'exports.$1 = class $1')
    .replace(/export const (\\w+): string/g, 'exports.$1')
    .replace(/this: IExecuteFunctions/g, '') });
"""
"""Stands for esbuild: it knows the TypeScript of these tests."""


def pack(folder: Path, archive: Path) -> Path:
    """Make a tarball as `npm pack` does."""
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, "package")
    return archive


def write_source(place: Path) -> Path:
    """Write a package that lists a built node, but has its TypeScript source only."""
    (place / "src" / "nodes").mkdir(parents=True)
    listed = {"name": "n8n-nodes-tiny", "version": "1.0.0", "n8n": {"nodes": ["dist/nodes/Tiny.node.js"]}}
    (place / "package.json").write_text(json.dumps(listed))
    (place / "src" / "nodes" / "Tiny.node.ts").write_text(NODE)
    (place / "src" / "nodes" / "paths.ts").write_text("export const path: string = '/books';\n")
    return place


def install(place: Path) -> None:
    """Install what stands for esbuild."""
    folder = place / "node_modules" / "esbuild"
    folder.mkdir(parents=True)
    (folder / "package.json").write_text('{"name": "esbuild", "main": "main.js"}')
    (folder / "main.js").write_text(TRANSPILER)


@needs_node
async def test_tarball_of_a_package_is_ported(swarm: SwarmRig, tmp_path: Path) -> None:
    root = await submit(swarm, pack(SHELF, tmp_path / "n8n-nodes-shelf-1.0.0.tgz"))
    await work(swarm, advised(swarm, None))
    tasks = await family(swarm, root)
    assert tasks["root"].status is TaskStatus.DONE, {name: task.summary for name, task in tasks.items()}
    left = await files(swarm, tasks["root"])
    assert json.loads(left["node_schema.json"])["found"] == 5
    assert "source_bundle/built/nodes/Shelf/Shelf.node.js" in left


@needs_node
async def test_tarball_that_changes_after_the_request_is_refused(swarm: SwarmRig, tmp_path: Path) -> None:
    archive = pack(SHELF, tmp_path / "n8n-nodes-shelf-1.0.0.tgz")
    root = await submit(swarm, archive)
    core = advised(swarm, None)
    await work(swarm, core, turns=2)
    archive.write_bytes(archive.read_bytes() + b" ")
    await work(swarm, core)
    tasks = await family(swarm, root)
    assert "changed or was removed" in f"{tasks['source-ingest'].summary} {tasks['source-ingest'].error}"


@needs_node
@pytest.mark.parametrize("is_packed", [False, True])
async def test_typescript_is_run_with_an_installed_transpiler(swarm: SwarmRig, tmp_path: Path, is_packed: bool) -> None:
    source = write_source(tmp_path / "n8n-nodes-tiny")
    install(tmp_path)
    root = await submit(swarm, pack(source, tmp_path / "tiny.tgz") if is_packed else source)
    await work(swarm, advised(swarm, None))
    tasks = await family(swarm, root)
    assert tasks["root"].status is TaskStatus.DONE, {name: task.summary for name, task in tasks.items()}
    left = await files(swarm, tasks["root"])
    operation = json.loads(left["node_schema.json"])["operations"][0]
    assert (operation["method"], operation["path"], bool(operation["template"])) == ("POST", "/books", True)
    assert left["source_bundle/src/nodes/paths.ts"].startswith("export const path")


@needs_node
async def test_typescript_without_a_transpiler_says_what_to_install(swarm: SwarmRig, tmp_path: Path) -> None:
    source = write_source(tmp_path / "n8n-nodes-tiny")
    root = await submit(swarm, source)
    await work(swarm, advised(swarm, None))
    told = (await family(swarm, root))["source-ingest"].summary
    assert "no transpiler is installed: `npm install esbuild`" in str(told)


def test_typescript_7_is_no_transpiler(tmp_path: Path) -> None:
    folder = tmp_path / "node_modules" / "typescript"
    (folder / "lib").mkdir(parents=True)
    (folder / "package.json").write_text("{}")
    program = tmp_path / "node" / "bin" / "node"
    assert find_transpiler(tmp_path, program) is None
    (folder / "lib" / "typescript.js").write_text("")
    assert find_transpiler(tmp_path / "inner", program) == folder


def test_package_lists_what_is_inside_only(tmp_path: Path) -> None:
    listed = {"n8n": {"nodes": ["../other/A.node.js", "dist/B.node.js", 5]}}
    (tmp_path / "package.json").write_text(json.dumps(listed))
    (tmp_path / "B.node.ts").write_text("")
    assert listed_nodes(tmp_path) == ["B.node.ts"]
    (tmp_path / "package.json").write_text("[]")
    assert listed_nodes(tmp_path) == []


def tarball(place: Path, *entries: tuple[str, bytes, bytes]) -> Path:
    """Write a tarball of entries: name, type, and content or target of a link."""
    archive = place / "evil.tgz"
    with tarfile.open(archive, "w:gz") as tar:
        for name, kind, content in entries:
            member = tarfile.TarInfo(name)
            member.type = kind
            if kind == tarfile.REGTYPE:
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
            else:
                member.linkname = content.decode()
                tar.addfile(member)
    return archive


def test_tarball_writes_nothing_outside_and_makes_no_links(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("sesame-4711")
    into = tmp_path / "into"
    listed = ("package/package.json", tarfile.REGTYPE, b"{}")
    links = (
        ("package/link.js", tarfile.SYMTYPE, b"../../secret.txt"),
        ("package/hard.js", tarfile.LNKTYPE, b"../secret.txt"),
        ("package/device", tarfile.CHRTYPE, b""),
    )
    found = unpack(tarball(tmp_path, listed, *links), into)
    assert sorted(each.name for each in found.iterdir()) == ["package.json"]
    for name in ("../outside.js", "package/../../outside.js"):
        with pytest.raises(InvalidInput, match="cannot be unpacked"):
            unpack(tarball(tmp_path, listed, (name, tarfile.REGTYPE, b"x")), tmp_path / "other")
    assert not list(tmp_path.glob("**/outside.js"))


def test_tarball_that_is_too_large_or_none_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npm, "MAX_UNPACKED_BYTES", 100)
    listed = ("package/package.json", tarfile.REGTYPE, b"{}")
    with pytest.raises(InvalidInput, match="name a smaller package"):
        unpack(tarball(tmp_path, listed, ("package/a.js", tarfile.REGTYPE, b"x" * 101)), tmp_path / "into")
    with pytest.raises(InvalidInput, match=r"has no folder with a package\.json"):
        unpack(tarball(tmp_path, ("package/a.js", tarfile.REGTYPE, b"x")), tmp_path / "into")
    broken = tmp_path / "broken.tgz"
    broken.write_bytes(b"no tarball")
    with pytest.raises(InvalidInput, match="cannot be unpacked"):
        unpack(broken, tmp_path / "into")
