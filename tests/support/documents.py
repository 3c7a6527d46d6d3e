"""Running the steps that make a node of a document in this process, each with its gate; no board and no advisor."""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fireswarm.contracts.skills.advice import ExecutionMode
from fireswarm.contracts.skills.artifact import WORKDIR_URI, Artifact
from fireswarm.contracts.skills.skill import SkillRequest, SkillResult, SkillState
from fireswarm.pipelines import check_step
from fireswarm.pipelines.definition import PipelineStep
from fireswarm.pipelines.files import PROJECT, Carried, lay_out
from fireswarm.pipelines.loading import read_pipeline
from fireswarm.settings.packaged import packaged_path
from fireswarm.skills.running.in_child import load_entry

HYBRID = ("schema-infer", "test-generate")
SCAFFOLD = ("node-normalize", "source-classify", "source-ingest", "schema-infer", "schema-build", "node-scaffold")
ALL = (*SCAFFOLD, "test-generate", "code-validate")
INFER = SCAFFOLD[:4]

NODE = read_pipeline(packaged_path("pipelines") / "node.yaml").pipeline


def step_named(name: str) -> PipelineStep:
    """Return a step of the node pipeline, or one that names nothing but itself."""
    return NODE.by_id.get(name) or PipelineStep(id=name)


def run_step(step: str, work: Path, artifacts: Sequence[Artifact], /, **context: Any) -> SkillResult:
    """Run one step and its gate; the files of its result have addresses that the next step can read."""
    folder = work / step
    folder.mkdir(parents=True)
    skill = load_entry(packaged_path("skills") / step, Path("scripts/skill.py"))
    request = SkillRequest(
        task_id="t", session_hash="s", objective="o", role="scout", context=context, workdir=folder,
        now=datetime(2026, 1, 1, tzinfo=UTC), artifacts=tuple(artifacts),
    )  # fmt: skip
    result: SkillResult = skill.run(request)
    mode = ExecutionMode.HYBRID if step in HYBRID else ExecutionMode.DETERMINISTIC
    check_step(step_named(step), mode, request, result)
    placed = [
        each.model_copy(update={"uri": (folder / (each.uri or "").removeprefix(WORKDIR_URI)).as_uri()})
        if (each.uri or "").startswith(WORKDIR_URI)
        else each
        for each in result.artifacts
    ]
    return result.model_copy(update={"artifacts": tuple(placed)})


def run_steps(source: Path, work: Path, steps: Sequence[str] = SCAFFOLD, **context: Any) -> tuple[SkillResult, Carried]:
    """Run steps until one does not complete; returns its result, and all files so far."""
    artifacts: tuple[Artifact, ...] = ()
    result = SkillResult(summary="")
    for step in steps:
        result = run_step(step, work, artifacts, source=str(source), **context)
        if result.state is not SkillState.COMPLETED:
            break
        artifacts = result.artifacts
    return result, Carried(work, {each.name: each for each in artifacts})


@dataclass(frozen=True)
class MadeNode:
    """A generated node: its package, and the files of its run."""

    module: Any
    files: Carried

    @property
    def schema(self) -> dict[str, Any]:
        """The schema as it was inferred."""
        return self.files.json("inferred_schema.json")

    def sent_by(self, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return the request of an operation, without its empty parts."""
        sent: list[dict[str, Any]] = []

        def send(method: str, path: str, **more: Any) -> Any:
            filled = {name: value for name, value in more.items() if value not in (None, {})}
            sent.append({"method": method, "path": path, **filled})

        self.module.run(operation, parameters, send)
        assert len(sent) == 1
        return sent[0]


@contextmanager
def made_node(texts: dict[str, str], source_file: str = "", **context: Any) -> Generator[MadeNode]:
    """Make a node of a folder with these files, or of one of them, and import it."""
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "source"
        lay_out(texts, source)
        source /= source_file
        result, files = run_steps(source, Path(place) / "work", name="made", **context)
        assert result.state is SkillState.COMPLETED, result.summary
        project = Path(place) / "project"
        lay_out(files.tree(PROJECT), project)
        sys.path.insert(0, str(project))
        try:
            package = next(iter(files.names(f"{PROJECT}nodes/"))).removeprefix(PROJECT).split("/")[1]
            yield MadeNode(importlib.import_module(f"nodes.{package}"), files)
        finally:
            sys.path.remove(str(project))
            for name in [name for name in sys.modules if name == "nodes" or name.startswith("nodes.")]:
                del sys.modules[name]


def validated(texts: dict[str, str], work: Path) -> tuple[dict[str, Any], Carried]:
    """Return the outcome of the tests of a node that is made of these files, and all files."""
    lay_out(texts, work / "source")
    result, files = run_steps(work / "source", work / "work", ALL, name="made")
    assert result.state is SkillState.COMPLETED, result.summary
    return json.loads(files.text("validation.json")), files
