"""The twelve shapes of sources: what is read of each, and the figures of the benchmark."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from benchmarks import pipeline_corpus
from fireswarm import pipelines
from tests.support.documents import SCAFFOLD, run_steps

SHAPES = Path(pipeline_corpus.__file__).parent / "shapes"
SHARES = ("method_and_path_share", "base_url_share", "replay_passed_share")

CALLS = {
    "html": (
        "GET /clouds", "PUT /clouds/{id}/name", "DELETE /clouds/{id}", "GET /clouds/{id}", "POST /clouds/{id}/rain",
    ),
    "markdown-fences": (
        "GET /rooms/{room}/lamps", "POST /rooms/{room}/lamps", "PUT /lamps/{id}/on", "PUT /lamps/{id}/off",
        "DELETE /lamps/{id}",
    ),
    "markdown-lists": ("GET /notes", "POST /notes", "PATCH /notes/{id}", "DELETE /notes/{id}", "HEAD /notes"),
    "n8n-nodes-crm": ("POST /contacts", "PATCH /contacts", "POST /sessions"),
    "n8n-nodes-pages": ("GET /entries",),
    "n8n-nodes-parcels": ("GET /parcels/{number}", "POST /parcels"),
    "n8n-nodes-rates": ("GET /latest", "GET /days/{day}", "POST /alerts"),
    "n8n-nodes-scans": ("POST /scans", "GET /scans/{scanId}/pdf"),
    "n8n-nodes-tickets": (
        "POST /tickets", "GET /tickets/{ticketId}", "PUT /tickets/{ticketId}", "DELETE /tickets/{ticketId}",
        "POST /tickets/{on}/comments",
    ),
    "openapi-files": (
        "GET /depots", "POST /depots", "PUT /depots/{id}", "DELETE /depots/{id}", "POST /depots/{id}/photo",
    ),
    "openapi-json": ("GET /mails", "POST /mails", "PATCH /mails/{id}", "PUT /raw", "GET /raw"),
    "swagger": ("GET /rides", "POST /rides", "POST /rides/{id}/receipt"),
}  # fmt: skip


def test_each_shape_is_listed() -> None:
    assert sorted(each.name for each in SHAPES.iterdir() if each.is_dir()) == sorted(CALLS)
    assert len(CALLS) == 12


@pytest.mark.parametrize("shape", CALLS)
def test_calls_of_a_shape_are_read(shape: str, tmp_path: Path) -> None:
    if shape.startswith("n8n") and shutil.which("node") is None:
        pytest.skip("built nodes are run by Node.js, which is not here")
    result, files = run_steps(SHAPES / shape, tmp_path, SCAFFOLD, name="made")
    assert "node_schema.json" in files, result.summary
    schema = pipelines.load_schema(files)
    assert sorted(f"{each.method} {each.path}" for each in schema.operations) == sorted(CALLS[shape])
    assert (schema.found, schema.present, schema.to_write()) == (len(CALLS[shape]), len(CALLS[shape]), [])


@pytest.mark.skipif(shutil.which("node") is None, reason="built nodes are run by Node.js, which is not here")
def test_figures_of_the_benchmark(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["pipeline_corpus", str(SHAPES)])
    pipeline_corpus.main()
    told = json.loads(capsys.readouterr().out)
    assert (told["nodes"], told["operations_present"], told["operations_found"], told["lost_silently"]) == (
        6,
        16,
        16,
        0,
    )
    assert (told["parameters_present"], told["parameters_found"]) == (28, 28)
    assert [told[share] for share in SHARES] == [1.0, 1.0, 1.0]
    documents = told["documents"]
    for part, count in {"operations": 28, "parameters": 15, "bodies": 8, "fields": 15, "pages": 1}.items():
        assert (documents[f"{part}_present"], documents[f"{part}_found"]) == (count, count), part
    assert (documents["nodes_that_pass"], told["ported_that_pass"], told["failed"]) == (6, 6, {})
    assert documents.get("lost_silently", 0) == 0
    assert told["mutants_killed_share"] >= 0.95
