"""The output folder of a stand-alone run: ``outputs`` in the folder of the run."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

from fireswarm.capabilities.workspace.artifacts import artifact_of, merge_outputs
from fireswarm.capabilities.workspace.outputs import NOTHING_DENIED, collect_outputs
from fireswarm.contracts.skills.artifact import Artifact, Signal
from fireswarm.contracts.skills.skill import SkillResult
from fireswarm.mind import Conclusion
from fireswarm.redaction import Redactor
from fireswarm.skills.running.denied_reads import DeniedReads

LEFT_OUT = "outputs_left_out"
"""Signal with the files that did not become artifacts."""


def output_artifacts(
    folder: Path, redact: Redactor, denied: DeniedReads = NOTHING_DENIED
) -> tuple[tuple[Artifact, ...], str]:
    """Return the files of an output folder as artifacts, with secrets removed, and a note on omitted files. Blocks."""
    found = collect_outputs(folder, redact.text, denied=denied)
    return tuple(artifact_of(file, file.path.as_uri()) for file in found.files), redact.clean(found.note)


def with_outputs(conclusion: Conclusion, folder: Path, redact: Redactor, denied: DeniedReads) -> Conclusion:
    """Return the conclusion with the files of the run's output folder as its last output. Blocks."""
    files, note = output_artifacts(folder, redact, denied)
    with contextlib.suppress(OSError):  # it has files
        folder.rmdir()
    earlier = [artifact for output in conclusion.outputs for artifact in output.artifacts]
    uris = {artifact.uri for artifact in files}
    inside = f"{folder.as_uri()}/"
    others = tuple(
        output.model_copy(
            update={"artifacts": tuple(each for each in output.artifacts if not (each.uri or "").startswith(inside))}
        )
        for output in conclusion.outputs
    )
    merged = tuple(each for each in merge_outputs(earlier, files) if each.uri in uris)
    if not merged and not note:
        return replace(conclusion, outputs=others)
    signals = (Signal(name=LEFT_OUT, strength=1.0, note=note),) if note else ()
    outputs = SkillResult(summary="files of the output folder", artifacts=merged, signals=signals)
    return replace(conclusion, outputs=(*others, outputs))


def left_out_notes(conclusion: Conclusion) -> list[str]:
    """Return the notes on files that did not become artifacts."""
    return [signal.note for output in conclusion.outputs for signal in output.signals if signal.name == LEFT_OUT]
