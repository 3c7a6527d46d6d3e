"""The form of a new objective: what is to be done, by whom, with which files, and within which limits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from fireswarm.api.console.forms import MAX_FORM_BYTES, Upload
from fireswarm.api.console.pages.spend import read_usd
from fireswarm.api.console.visit import Goto, Shown, Visit
from fireswarm.api.models.base import storable
from fireswarm.client import Swarm
from fireswarm.contracts.model_choice import Effort
from fireswarm.contracts.skills.artifact import Attachment
from fireswarm.contracts.swarm.agent import DEFAULT_ROLE
from fireswarm.contracts.swarm.task import DEFAULT_PRIORITY
from fireswarm.contracts.swarm.task_fields import make_spec
from fireswarm.errors import FireswarmError, InvalidInput
from fireswarm.swarm.records.artifacts import safe_file_name

MAX_DIGITS, MAX_PATH_CHARS = 10, 200
NAME_DIGITS = 16
"""Hexadecimal digits of a file's hash in its address: a form that is sent twice is one task."""

TEXTS = (
    "objective", "role", "expected_outcome", "path", "priority", "skill", "model", "effort", "deadline", "depends_on",
    "usd", "timeout_seconds", "context", "again", "review_plan", "read_only", "demo_safe",
)  # fmt: skip
"""Fields of the form."""


async def show(visit: Visit) -> Shown:
    """Make the form. Raises InvalidInput for a browser that may only look."""
    if not visit.visitor.acts:
        raise InvalidInput("this link may only look: ask for a link of an operator")
    return _make_form(visit, {"role": DEFAULT_ROLE, "priority": str(DEFAULT_PRIORITY)}, "", 200)


def _make_form(visit: Visit, given: dict[str, str], fault: str, status: int) -> Shown:
    parts = visit.swarm.parts
    values = {
        "given": dict.fromkeys(TEXTS, "") | given,
        "roles": sorted(parts.roles.values(), key=lambda card: card.name),
        "skills": sorted({*parts.catalog.skills, *parts.inline}),
        "efforts": list(get_args(Effort)),
        "fault": fault,
        "had_files": bool(visit.files),
        "most": f"{MAX_FORM_BYTES // 10**6} MB",
    }
    return Shown("new.html", values, status)


async def submit(visit: Visit) -> Goto | Shown:
    """Submit an objective, and go to its task; with a fault, show the form as it was sent."""
    given = {name: visit.form.get(name, "").replace("\r\n", "\n").strip() for name in TEXTS}
    try:
        fields = _read_fields(visit, given)
        usd = read_usd(given) if given["usd"] else None
        make_spec(**fields)  # what cannot be a task stores no files
        fields["attachments"] = await _store_files(visit.swarm, visit.files)
        submitted = await visit.swarm.submit(make_spec(**fields))
        if usd is not None and submitted.created:
            await visit.swarm.budget(submitted.task_id, usd=usd)
    except FireswarmError as error:
        return _make_form(visit, given, str(error), 422)
    return Goto(f"/tasks/{submitted.task_id}", "submitted" if submitted.created else "known")


def _read_fields(visit: Visit, given: dict[str, str]) -> dict[str, Any]:
    """Return the fields of the task. Raises InvalidInput."""
    if not given["objective"]:
        raise InvalidInput("say what is to be done")
    limits: dict[str, Any] = {name: True for name in ("read_only", "demo_safe") if given[name] == "yes"}
    if given["timeout_seconds"]:
        limits["timeout_seconds"] = _whole_number(given["timeout_seconds"], "the time of a step")
    return {
        "objective": given["objective"],
        "assigned_to": given["role"] or DEFAULT_ROLE,
        "session_hash": visit.swarm.session,
        "created_by": "console",
        "priority": _whole_number(given["priority"] or str(DEFAULT_PRIORITY), "priority"),
        "expected_outcome": given["expected_outcome"],
        "review_plan": given["review_plan"] == "yes",
        "skill": given["skill"] or None,
        "model": given["model"] or None,
        "effort": given["effort"] or None,
        "deadline": _moment(given["deadline"]),
        "depends_on": tuple(dict.fromkeys(given["depends_on"].replace(",", " ").split())),
        "constraints": limits,
        "context": _inputs(given["context"]) | _place(given["path"]),
        "fresh_key": given["again"],
    }


async def _store_files(swarm: Swarm, files: Sequence[Upload]) -> list[Attachment]:
    attachments: list[Attachment] = []
    for file in files:
        digest = hashlib.sha256(file.content).hexdigest()[:NAME_DIGITS]
        name = f"{swarm.session}/attached/{digest}/{safe_file_name(file.name)}"
        uri = await swarm.parts.blobs.put(name, file.content)
        attachments.append(Attachment(name=file.name, mime=file.media_type, uri=uri))
    return attachments


def _moment(text: str) -> datetime | None:
    """Return a time in UTC, as a browser's field gives it. Raises InvalidInput."""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC) if text else None
    except ValueError:
        raise InvalidInput(f"{text!r} is no time: write it as 2026-11-29T18:00, in UTC") from None


def _inputs(text: str) -> dict[str, Any]:
    """Return the further inputs. Raises InvalidInput for what is no JSON object."""
    try:
        read: Any = storable(json.loads(text or "{}"))
    except (ValueError, RecursionError):
        read = None
    if not isinstance(read, dict):
        raise InvalidInput('further inputs must be a JSON object, such as {"month": "2026-10"}')
    return read


def _place(path: str) -> dict[str, str]:
    """Return a folder as context. Raises InvalidInput for one that this machine does not have."""
    if not path:
        return {}
    try:
        return {"path": str(Path(path).expanduser().resolve(strict=True))}
    except (OSError, RuntimeError, ValueError) as error:
        raise InvalidInput(
            f"the folder {path[:MAX_PATH_CHARS]} does not exist on the machine of the console"
        ) from error


def _whole_number(text: str, name: str) -> int:
    if not (text.isdecimal() and len(text) < MAX_DIGITS):
        raise InvalidInput(f"{name} must be a whole number")
    return int(text)
