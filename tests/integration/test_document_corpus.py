"""The benchmark of documents: what it finds in a folder, and its figures."""

from __future__ import annotations

from pathlib import Path

from benchmarks.document_corpus import find_documents, judge_document
from fireswarm.pipelines.files import lay_out

OPENAPI = """openapi: 3.0.3
servers: [{url: https://t.example}]
paths:
  /a: {get: {operationId: a, tags: [a], parameters: [{name: q, in: query, schema: {type: string}}]}}
  /b: {$ref: 'gone.yaml'}
"""


def test_documents_of_a_folder_are_found_and_judged(tmp_path: Path) -> None:
    calls = "".join(f"## Call {number}\n\n```\nGET /c{number}/:id\n```\n\n" for number in range(5))
    lay_out({"api.yaml": OPENAPI, "docs/api.md": calls, "package.json": '{"name": "openapi"}'}, tmp_path)
    documents = list(find_documents(tmp_path))
    assert documents == [tmp_path / "api.yaml", tmp_path / "docs"]
    counts, why = judge_document(documents[0])
    assert why == ""
    assert (counts["operations_found"], counts["operations_present"]) == (1, 1)
    assert counts["listed_as_unread"] >= 1, "/b"
    assert (counts["nodes_that_pass"], counts["lost_silently"]) == (1, 0)
    counts, why = judge_document(documents[1])
    assert (counts["operations_found"], counts["nodes_that_pass"], why) == (5, 1, "")
