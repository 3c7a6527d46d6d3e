"""Options of ``swarm submit``, and how their values are parsed."""

from __future__ import annotations

import json
import mimetypes
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from fireswarm.cli.shared.options import pairs
from fireswarm.contracts.base import explain_validation
from fireswarm.contracts.skills.artifact import Attachment
from fireswarm.contracts.skills.capability import CapabilityUse
from fireswarm.contracts.swarm.constraints import Constraints
from fireswarm.contracts.swarm.task import ChildFailure
from fireswarm.errors import InvalidInput

ContextPairs = Annotated[
    list[str] | None, typer.Option("--context", help="key=value of the context, repeatable; values may be JSON.")
]
CapabilityUses = Annotated[
    list[str] | None,
    typer.Option("--capability", help="Capability in addition to the role's: an id or JSON; repeatable."),
]
Deadline = Annotated[
    datetime | None, typer.Option("--deadline", help="UTC time after which an unfinished task is blocked.")
]
Again = Annotated[
    str, typer.Option("--again", help="Any text; creates a new task for an objective that was already submitted.")
]
ConstraintPairs = Annotated[
    list[str] | None,
    typer.Option("--constraint", help="read_only, demo_safe or timeout_seconds=N; also applies to all tasks below it."),
]
ReviewPlan = Annotated[
    bool, typer.Option("--review-plan", help="Ask for your approval before the tasks of a plan are made.")
]
Attached = Annotated[list[str] | None, typer.Option("--attach", help="Input file, or URI of one; repeatable.")]
BestEffort = Annotated[
    bool,
    typer.Option(
        "--best-effort", help="Without a model, report what is available even if it does not answer the objective."
    ),
]
Expected = Annotated[str, typer.Option("--expect", help="Expected outcome, used to judge the result.")]
After = Annotated[list[str] | None, typer.Option("--after", help="Id of a task to wait for, repeatable.")]
ModelNamed = Annotated[
    str | None,
    typer.Option("--model", help="NAME or PROVIDER:NAME; also for the tasks below it whose roles have no model."),
]
EffortNamed = Annotated[str | None, typer.Option("--effort", help="How much the model thinks: low, medium, high, ...")]
FallbackNamed = Annotated[
    list[str] | None, typer.Option("--fallback", help="Model to ask while the model cannot be reached; repeatable.")
]
OnChildFailure = Annotated[
    ChildFailure, typer.Option("--on-child-failure", help="If a task below is given up: plan again, wait, or fail.")
]


def parse_constraints(given: list[str] | None) -> Constraints:
    """Parse ``--constraint``: a name alone means true. Raises InvalidInput for an unknown name."""
    values = pairs([item if "=" in item else f"{item}=true" for item in given or ()], "--constraint")
    if unknown := sorted(values.keys() - Constraints.model_fields.keys()):
        raise InvalidInput(f"--constraint {unknown[0]}: known are {', '.join(Constraints.model_fields)}")
    try:
        return Constraints.model_validate(values)
    except ValidationError as error:
        raise InvalidInput(f"--constraint: {explain_validation(error)}") from error


def places(**named: Path | None) -> dict[str, str]:
    """Return the given paths as context. Raises InvalidInput for a path that does not exist."""
    for option, path in named.items():
        if path is not None and not path.exists():
            raise InvalidInput(f"--{option} {path} does not exist")
    return {option: str(path.resolve()) for option, path in named.items() if path is not None}


def with_best_effort(wanted: bool) -> dict[str, bool]:
    """Return the context of ``--best-effort``. It is part of the task's key, so the objective becomes another task."""
    return {"best_effort": True} if wanted else {}


def parse_attachments(given: list[str] | None) -> tuple[Attachment, ...]:
    """Parse ``--attach``: a URI, or an existing file. Raises InvalidInput for a file that does not exist."""
    attachments: list[Attachment] = []
    for text in given or ():
        path = Path(text)
        if "://" not in text and not path.is_file():
            raise InvalidInput(f"--attach {text} is not a file")
        if "://" in text:
            uri, name = text, text.rpartition("/")[2] or text
        else:
            uri, name = path.resolve().as_uri(), path.resolve().name
        mime = mimetypes.guess_type(uri)[0] or "application/octet-stream"
        attachments.append(Attachment(name=name, mime=mime, uri=uri))
    return tuple(attachments)


def parse_uses(given: list[str] | None) -> tuple[CapabilityUse, ...]:
    """Parse ``--capability``: an id, or a map of id, config and prefix."""
    try:
        return tuple(CapabilityUse.model_validate(json.loads(text) if "{" in text else text) for text in given or ())
    except ValidationError as error:
        raise InvalidInput(f"--capability: {explain_validation(error)}") from error
    except ValueError as error:
        raise InvalidInput(f"--capability takes an id, or JSON with id, config and prefix: {error}") from error
