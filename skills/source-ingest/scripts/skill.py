"""Copy the source into the run, unchanged since the snapshot: later steps read only this copy.

A built node is also run, with a recorder in the place of the network.
"""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

from fireswarm import (
    SkillRequest,
    SkillResult,
    count_noun,
    errors,
    pipelines,
    read_regular_file,
)

from .recording import record

MAX_BYTES = 20_000_000
HTML = (".html", ".htm")
"""Pages are turned into Markdown."""

MAX_ARCHIVE_BYTES = 100_000_000
"""node-normalize accepts no larger sources."""


def run(request: SkillRequest) -> SkillResult:
    """The source bundle, and a manifest of it."""
    carried = pipelines.Carried.of(request)
    source = carried.json("request_snapshot.json")["source"]
    root = carried.source(request)
    lines = 0
    is_archive = pipelines.is_archive(root)
    for file in source["files"]:
        path = root if root.is_file() else root / file["name"]
        try:
            content = read_regular_file(path, MAX_ARCHIVE_BYTES if is_archive else MAX_BYTES)
        except OSError:
            content = b""
        if hashlib.sha256(content).hexdigest() != file["sha256"]:
            told = f"{file['name']} changed or was removed since the request: submit the pipeline again"
            return SkillResult.failure(told)
        if is_archive:
            continue
        try:
            text = content.decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError:
            return SkillResult.failure(f"{file['name']} is not UTF-8 text: save it as UTF-8")
        name = file["name"]
        if name.lower().endswith(HTML):
            # Evidence cites the lines of the bundle: what an advisor and a reader of Markdown can read.
            name, text = f"{name}.md", pipelines.page_as_markdown(text)
        carried.write(f"{pipelines.SOURCES}{name}", text)
        lines += len(text.splitlines())
    told = f"{count_noun(len(source['files']), 'file')}, {count_noun(lines, 'line')} in the bundle"
    if carried.json("classification.json")["reader"] == "recorded":
        try:
            with tempfile.TemporaryDirectory(dir=request.workdir) as folder:
                if is_archive:
                    told = record(
                        carried, pipelines.unpack(root, Path(folder).resolve()) / source["node"], root.parent, request
                    )
                else:
                    told = record(carried, root, pipelines.package_root(root), request)
        except errors.InvalidInput as error:
            return SkillResult.failure(str(error))
    carried.write_json("source_manifest.json", {"files": source["files"], "lines": lines})
    return SkillResult(summary=told, artifacts=carried.artifacts())
