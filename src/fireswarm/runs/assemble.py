"""Assemble a model's run: its grant, its file tools, and its system text. Agent, role and preview use it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from pathlib import Path

from fireswarm.capabilities.workspace.artifacts import ArtifactWriter, artifact_tools
from fireswarm.capabilities.workspace.place import Hides
from fireswarm.capabilities.workspace.writing import workspace_tools
from fireswarm.contracts.grant import Grant, Verdict, stricter_profile
from fireswarm.contracts.skills.given_files import GivenFiles
from fireswarm.contracts.skills.permissions import StricterPermissions
from fireswarm.contracts.skills.tool import Tool
from fireswarm.contracts.swarm.constraints import Constraints
from fireswarm.mind import gate
from fireswarm.redaction import Redactor
from fireswarm.settings.agent import AgentSettings
from fireswarm.skills.running.denied_reads import DeniedReads

Publish = Callable[[str, Path], Awaitable[str]]
"""Stores a file of the output folder by its name, and returns its URI."""


NO_CONSTRAINTS = Constraints()


def grant_of(
    settings: AgentSettings,
    cwd: Path,
    *rules: StricterPermissions,
    auto: Verdict = Verdict.ALLOW,
    constraints: Constraints = NO_CONSTRAINTS,
    yes: bool = False,
    role: str = "",
) -> Grant:
    """Return the grant of a run of *role* in *cwd*. *rules* are the rules of the role card and the task.

    *auto* decides on a change that no rule allows, if ``permissions.default`` is ``auto``. *yes* approves every call
    that no rule denies.
    """
    stricter = StricterPermissions()
    for each in rules:
        stricter = stricter.and_also(each)
    given, runtime = settings.permissions, settings.runtime
    return Grant(
        cwd,
        stricter_profile(constraints, runtime.profile),
        given.allow,
        given.ask,
        given.deny,
        auto if given.default == "auto" else Verdict(given.default),
        stricter,
        yes,
        confined=runtime.confinement != "none",
        runs_outside_scripts=settings.skills.outside_scripts != "block",
        readable=runtime.readable,
        network=runtime.network,
        environment=runtime.pass_environment,
        role=role,
    )


def file_tools(
    grant: Grant,
    outputs: Path,
    redact: Redactor,
    publish: Publish | None = None,
    inputs: GivenFiles | None = None,
) -> dict[str, Tool]:
    """Return the tools for files.

    Tools that write are restricted to the output folder if the run may not write elsewhere.

    *redact* finds secrets. *publish* stores an artifact; without it, the file is not moved.
    """

    def refusal(path: str) -> str:
        match gate.decide(gate.read_call(path), grant):
            case gate.Allow():
                return ""
            case gate.Ask(reason) | gate.Deny(reason):
                return reason

    hides = hide_denied(grant)
    writer = ArtifactWriter(grant.cwd, outputs, redact.text, refusal=refusal, inputs=inputs, hides=hides)
    if publish is not None:
        writer = replace(writer, publish=publish)
    files = workspace_tools(grant.cwd, outputs, writable=grant.writes, inputs=inputs, redact=redact, hides=hides)
    return files | artifact_tools(writer)


def hide_denied(grant: Grant) -> Hides | None:
    """Return the function that tells the paths that a run may not read; None if there are no such rules."""
    denied = DeniedReads.of(grant)
    return denied.hiding(grant.cwd.resolve()) if denied.patterns else None


def system_text(parts: Iterable[str]) -> str:
    """Return the system text: all parts that are not empty."""
    return "\n\n".join(text for part in parts if (text := part.strip()))
