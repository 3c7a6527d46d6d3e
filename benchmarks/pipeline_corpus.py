"""How much of published nodes the pipeline reads: `python -m benchmarks.pipeline_corpus FOLDER` prints a line of JSON.

FOLDER holds unpacked npm packages with built nodes (`npm pack NAME`, then `tar xzf`). A ``node_modules`` folder
inside a package is used. Each node is run confined, without network.

- ``operations_present``: in the descriptions; ``operations_found``: of the newest version; the others are listed;
- ``method_and_path``: operations that sent a request; ``base_urls``: nodes with a base URL, of those that sent one;
- ``replayed``: operations whose template repeats all recorded requests and items, of those that sent something;
- ``lost_silently``: operations in a description, counted apart from the reader, that are neither found nor listed.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from fireswarm import pipelines
from fireswarm.settings.packaged import packaged_path

RECORDER = packaged_path("skills") / "source-ingest" / "recorder"
SECONDS = 120.0


def record(root: Path, file: Path) -> dict[str, Any]:
    """Return the recording of one file; with ``error`` if it could not be run."""
    with tempfile.TemporaryDirectory() as place:
        output = Path(place).resolve() / "recorded.json"
        view = pipelines.View(output.parent, writable=True, readable=(root, RECORDER), protects=False)
        command = [
            "node",
            "--no-warnings",
            str(RECORDER / "record.js"),
            str(root),
            str(file.relative_to(root)),
            str(output),
        ]
        code, told = pipelines.run_confined(command, view, {}, SECONDS)
        return json.loads(output.read_text()) if output.is_file() else {"error": f"exit code {code}: {told[-200:]}"}


def judge(node: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the counts of one recorded node."""
    present = pipelines.described_operations(node["description"])
    if not present:
        return
    yield "nodes", 1
    recorded = pipelines.recorded_node(node)
    yield "operations_present", len(recorded.operations) + len(recorded.hidden)
    yield "operations_found", len(recorded.operations)
    yield "lost_silently", len(pipelines.lost_operations(recorded))
    urls = [sent.url for operation in recorded.operations for case in operation.cases for sent in case.requests]
    base = pipelines.common_base(urls)
    yield "nodes_that_send", bool(urls)
    yield "base_urls", bool(base)
    for operation in recorded.operations:
        if not any(case.requests for case in operation.cases):
            continue
        yield "method_and_path", 1
        try:
            pipelines.infer(operation.cases, base)
        except pipelines.NoTemplate:
            continue
        yield "replayed", 1


def main() -> None:
    """Record all nodes below the folder that is named, and print the counts."""
    started = time.monotonic()
    folder = Path(sys.argv[1]).resolve()
    packages = [path.parent for path in sorted(folder.rglob("package.json")) if "node_modules" not in path.parts]
    outer = [each for each in packages if not any(each.is_relative_to(other) for other in packages if other != each)]
    files = [
        (root, file) for root in outer for file in sorted(root.rglob("*.node.js")) if "node_modules" not in file.parts
    ]
    counts: Counter[str] = Counter()
    failed: dict[str, str] = {}
    with ThreadPoolExecutor(2) as pool:
        for (root, file), recording in zip(files, pool.map(record, *zip(*files, strict=True)), strict=True):
            if "error" in recording:
                failed[str(file.relative_to(root))] = str(recording["error"]).splitlines()[0][:200]
            for node in recording.get("nodes") or ():
                for name, number in judge(node):
                    counts[name] += number
    sending = max(counts["method_and_path"], 1)
    shares = {
        "method_and_path_share": round(counts["method_and_path"] / max(counts["operations_present"], 1), 3),
        "base_url_share": round(counts["base_urls"] / max(counts["nodes_that_send"], 1), 3),
        "replay_passed_share": round(counts["replayed"] / sending, 3),
    }
    seconds = round(time.monotonic() - started, 1)
    print(json.dumps({**counts, **shares, "files": len(files), "files_not_run": failed, "seconds": seconds}))


if __name__ == "__main__":
    main()
