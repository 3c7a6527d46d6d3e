"""How much of published nodes and API documents is read: `python -m benchmarks.pipeline_corpus FOLDER` prints JSON.

FOLDER holds unpacked packages (`npm pack NAME`, then `tar xzf`). A ``node_modules`` folder inside a package is used.
Each built node in them is run confined, without network. Each OpenAPI document and each folder with Markdown becomes a
node whose tests are run: see ``document_corpus.py``.

- ``operations_present``: in the descriptions; ``operations_found``: of the newest version; the others are listed;
- ``method_and_path``: operations that sent a request; ``base_urls``: nodes with a base URL, of those that sent one;
- ``parameters_present``: of each operation those that its form can show; ``parameters_found``: those
  of them that a recorded input has, the schema lists the others;
- ``replayed``: operations whose template repeats all recorded requests and items, of those that sent something;
- ``lost_silently``: operations in a description, and parts of documents, counted apart from the reader, that are
  neither found nor listed;
- ``documents``: operations, parameters, bodies and their fields, present and found; ``nodes_that_pass``: nodes whose
  tests pass, of those that need no advisor. ``failed`` has the reasons of the others;
- ``mutants_killed_share``: of small changes of the code, those that the tests find: of all documents, and of one in
  eight nodes, which go through all steps (``ported``); nodes that need an advisor do not pass and are not changed.
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

from benchmarks.document_corpus import find_documents, judge_document, port_nodes
from fireswarm import pipelines
from fireswarm.settings.packaged import packaged_path
from fireswarm.skills.running.in_child import load_entry

RECORDER = packaged_path("skills") / "source-ingest" / "recorder"
INFER: Any = load_entry(packaged_path("skills") / "schema-infer", Path("scripts/skill.py"))
SECONDS = 120.0
MAX_REASON_CHARS = 200


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
    parts = INFER.recorded.read(recorded, {}, "made").parts if recorded.operations else {}
    parameters = parts.get("parameters", pipelines.PartCount())
    yield "parameters_present", parameters.present
    yield "parameters_found", parameters.found
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


def find_packages(folder: Path) -> list[Path]:
    """Return the folders of the packages below a folder, without those inside of others."""
    packages = [path.parent for path in sorted(folder.rglob("package.json")) if "node_modules" not in path.parts]
    return [each for each in packages if not any(each.is_relative_to(other) for other in packages if other != each)]


def count_nodes(folder: Path, counts: Counter[str], failed: dict[str, str]) -> int:
    """Add the counts of all nodes below a folder; returns how many files have nodes."""
    files = [
        (root, file)
        for root in find_packages(folder)
        for file in sorted(root.rglob("*.node.js"))
        if "node_modules" not in file.parts
    ]
    with ThreadPoolExecutor(2) as pool:
        recordings = pool.map(record, [root for root, _ in files], [file for _, file in files])
        for (root, file), recording in zip(files, recordings, strict=True):
            if "error" in recording:
                failed[str(file.relative_to(root))] = str(recording["error"]).splitlines()[0][:MAX_REASON_CHARS]
            for node in recording.get("nodes") or ():
                counts.update(Counter(dict(_sums(judge(node)))))
    return len(files)


def _sums(pairs: Iterator[tuple[str, int]]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for name, number in pairs:
        sums[name] += number
    return sums


def main() -> None:
    """Read all nodes and documents below the folder that is named, and print the counts."""
    started = time.monotonic()
    folder = Path(sys.argv[1]).resolve()
    nodes: Counter[str] = Counter()
    documents: Counter[str] = Counter()
    failed: dict[str, str] = {}
    told: dict[str, Any] = {"files": count_nodes(folder, nodes, failed)}
    if told["files"]:
        told |= nodes
        told["method_and_path_share"] = round(nodes["method_and_path"] / max(nodes["operations_present"], 1), 3)
        told["base_url_share"] = round(nodes["base_urls"] / max(nodes["nodes_that_send"], 1), 3)
        told["replay_passed_share"] = round(nodes["replayed"] / max(nodes["method_and_path"], 1), 3)
    for path in find_documents(folder):
        counts, why = judge_document(path)
        documents += counts
        if why:
            failed[str(path.relative_to(folder))] = why
    ported = sum((port_nodes(root) for root in find_packages(folder)), Counter[str]())
    made, found = (ported[name] + documents.pop(name, 0) for name in ("changes", "changes_found"))
    told |= {"documents": dict(documents)} if documents else {}
    told |= {"ported": ported["ported"], "ported_that_pass": ported["ported_that_pass"]} if ported else {}
    told |= {"mutants": made, "mutants_killed_share": round(found / made, 3)} if made else {}
    print(json.dumps({**told, "failed": failed, "seconds": round(time.monotonic() - started, 1)}))


if __name__ == "__main__":
    main()
