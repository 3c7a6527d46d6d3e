"""The tool that stores an artifact of the task, from a text or from a file."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import anyio.to_thread
from pydantic import Field

from fireswarm.capabilities.capability import tool
from fireswarm.capabilities.workspace.outputs import OutputFile, check_artifact_name, media_type_of
from fireswarm.capabilities.workspace.place import Hides, Workspace, place_of
from fireswarm.contracts.skills.artifact import Artifact, type_refusal
from fireswarm.contracts.skills.given_files import GivenFiles
from fireswarm.contracts.skills.tool import Tool, ToolAnswer
from fireswarm.errors import InvalidInput

MAX_TEXT_BYTES = 10_000_000
MAX_FILE_BYTES = 50_000_000
ARTIFACT_TYPE = "file"
"""Type of an artifact that came from the output folder and was given none."""


async def _local_uri(name: str, path: Path) -> str:
    return path.as_uri()


def _may_read(path: str) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class ArtifactWriter:
    """Writes artifacts into the output folder of a task.

    *publish* returns the URI of an artifact from its name and its file; *clean* removes secrets from a text;
    *refusal* returns the reason why the file at a path may not be read, or "".
    """

    workspace: Path
    outputs: Path
    clean: Callable[[str], str]
    publish: Callable[[str, Path], Awaitable[str]] = _local_uri
    refusal: Callable[[str], str] = field(default=_may_read)
    inputs: GivenFiles | None = None
    hides: Hides | None = None

    async def write_artifact(
        self,
        name: Annotated[str, Field(description="file name, such as report.md or charts/a.png")],
        content: Annotated[str | None, Field(description="the text of the artifact")] = None,
        path: Annotated[str | None, Field(description="or a file to copy, such as one that a command made")] = None,
        type: Annotated[
            str,
            Field(max_length=64, pattern=r"^[a-z][a-z0-9_-]*$", description="a word such as report, table or chart"),
        ] = ARTIFACT_TYPE,
        description: Annotated[str, Field(max_length=300, description="what it holds, in one line")] = "",
    ) -> ToolAnswer:
        """Stores a result of the task, for the person who asked and for every task that depends on this one.

        An artifact of the same name is replaced.
        """
        check_artifact_name(name)
        if reason := type_refusal(type):
            raise InvalidInput(reason)
        if (content is None) == (path is None):
            raise InvalidInput("write_artifact needs either content, a text, or path, a file")
        if path is not None and self.inputs is not None and (given := self.inputs.name_of(path)) is not None:
            await self.inputs.fetch(given)
        data = await anyio.to_thread.run_sync(self._content, content, path)
        place = Workspace(self.outputs)
        target = self.outputs / name
        await anyio.to_thread.run_sync(place.write, target, data)
        artifact = Artifact(
            type=type,
            name=name,
            summary=self.clean(" ".join(description.split())),
            uri=await self.publish(name, target),
            mime=media_type_of(name),
            size_bytes=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
        )
        return ToolAnswer(f"stored artifact {name}: {len(data):,} bytes", artifacts=(artifact,))

    def _content(self, content: str | None, path: str | None) -> bytes:
        """Return the bytes of the artifact without secrets, from a text or a file. Raises InvalidInput."""
        if path is None:
            data = self.clean(content or "").encode("utf-8", "replace")
            if len(data) > MAX_TEXT_BYTES:
                raise InvalidInput(
                    f"content has {len(data):,} bytes; {MAX_TEXT_BYTES:,} are allowed: write a file and give its path"
                )
            return data
        if reason := self.refusal(path):
            raise InvalidInput(f"{path} may not be read: {reason}")
        place, named = place_of(path, self.workspace, self.outputs, self.inputs, hides=self.hides)
        located = place.locate(named)
        if located.is_dir():
            raise InvalidInput(f"{path} is a folder: give the path of a file")
        data = place.read(located, MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise InvalidInput(f"{path} has more than {MAX_FILE_BYTES:,} bytes, which an artifact may have")
        try:
            return self.clean(data.decode("utf-8")).encode("utf-8", "replace")
        except UnicodeDecodeError:
            return data


def artifact_tools(writer: ArtifactWriter) -> dict[str, Tool]:
    """Return the tool that stores artifacts. It writes to the output folder only, so every task may use it."""
    made = replace(tool(writes=True)(writer.write_artifact), outputs_only=True, idempotent=True)
    return {made.name: made}


def artifact_of(file: OutputFile, uri: str) -> Artifact:
    """Return a collected file as an artifact."""
    return Artifact(
        type=ARTIFACT_TYPE, name=file.name, uri=uri, mime=file.mime, size_bytes=file.size, sha256=file.sha256
    )


def merge_outputs(earlier: Sequence[Artifact], collected: Sequence[Artifact]) -> tuple[Artifact, ...]:
    """Return the artifacts without repetition: a file that was collected replaces the artifact of its URI.

    It keeps the type that the earlier one was given, if a model may give it: the file may have changed since.
    """
    newest = {artifact.uri: artifact for artifact in collected}
    for artifact in earlier:
        if (file := newest.get(artifact.uri)) is not None and file.type == ARTIFACT_TYPE:
            kind = file.type if type_refusal(artifact.type) else artifact.type
            newest[artifact.uri] = file.model_copy(update={"type": kind, "summary": artifact.summary})
    kept = {number: each for number, each in enumerate(earlier) if each.uri is None or each.uri not in newest}
    last = {each.uri or number: number for number, each in kept.items()}
    return (*[each for number, each in kept.items() if last[each.uri or number] == number], *newest.values())
