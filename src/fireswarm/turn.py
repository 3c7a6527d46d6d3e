"""One leased task to its outcome: gather, choose a skill, run it as a journaled step, publish, conclude.

Whatever goes wrong becomes an Outcome here; only cancellation passes through.
"""

from __future__ import annotations

import json
import shutil
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from fireswarm.agents import HOOKS, PLAIN
from fireswarm.board import HeldLease
from fireswarm.contracts.documents import parse_task, task_path
from fireswarm.contracts.envelope import Artifact, Envelope, Signal
from fireswarm.contracts.outcome import Done, Failed, Handoff, Outcome, Retry, Waiting
from fireswarm.contracts.run import MAX_INLINE_PAYLOAD_BYTES, RunStatus
from fireswarm.contracts.skill import ChildResult, Fact, SkillRequest, SkillResult, SkillState
from fireswarm.contracts.task import StatusReason, Task, TaskResult, TaskStatus
from fireswarm.errors import FireswarmError, InvalidInput, LeaseLost, SkillFailed, StepUncertain, StoreError
from fireswarm.journal import Journal
from fireswarm.kit import Kit
from fireswarm.ports import Write
from fireswarm.skills import router
from fireswarm.skills.catalog import Skill
from fireswarm.skills.execute import run_skill

WORKDIR_URI = "workdir:"
STORED_VALUE = "application/vnd.fireswarm.value+json"
"""Mime type of an artifact whose value was too large for a document and waits in the blob store."""


class Ending(NamedTuple):
    """A turn's outcome and the writes that are committed with it."""

    outcome: Outcome
    also: tuple[Write, ...]


class _SaidFailed(FireswarmError):
    """A skill reported that it failed; ``result`` says how."""

    code = "skill_said_failed"

    def __init__(self, result: SkillResult) -> None:
        super().__init__(result.summary)
        self.result = result


@dataclass(frozen=True, slots=True)
class _Gathered:
    """What came with a task: results of dependencies and children, and its envelope."""

    dependencies: tuple[Task, ...]
    children: tuple[Task, ...]
    envelope: Envelope | None
    facts: tuple[Fact, ...]


async def open_journal(held: HeldLease, kit: Kit) -> Journal:
    """Open the journal of a lease's run."""
    return await Journal.open(kit.store, kit.clock, kit.blobs, held.task, held.epoch, held.owner, held.claimed_at)


async def run_turn(held: HeldLease, kit: Kit) -> Ending:
    """Work on a leased task until it is done, fails, waits or hands work over."""
    journal = await open_journal(held, kit)
    also: list[Write] = []
    try:
        outcome = await _turn(held, kit, journal, also)
    except LeaseLost:
        raise
    except Exception as error:  # the task boundary: every failure becomes an outcome, and is journaled
        also.clear()
        outcome = _failure(error)
        journal.note("turn_failed", error=_told(error))
    return Ending(outcome, (*also, *_closing(journal, outcome)))


async def _turn(held: HeldLease, kit: Kit, journal: Journal, also: list[Write]) -> Outcome:
    task = held.task
    if task.duplicate_of is not None:
        return await _same_as(task, kit)
    hooks = HOOKS.get(task.assigned_to, PLAIN)
    facts = await hooks.facts(kit, task)
    gathered = await _gather(held, kit, facts)
    if gathered.envelope is not None:
        also += kit.mailbox.opened(task)
    request = await _request(task, kit, gathered, kit.workdir / held.run_id)
    result = await _run(task, kit, journal, request)
    also += hooks.effects(kit, task, result)
    also += kit.memory.remember(task, result.facts)
    outcome = _conclude(task, result)
    if isinstance(outcome, Handoff):
        births = kit.board.births(held, outcome)
        also += kit.mailbox.handoffs(task, births, outcome.result, outcome.notes)
    return outcome


async def _same_as(task: Task, kit: Kit) -> Outcome:
    """End a twin with the result of the task that did the work."""
    path = task_path(str(task.duplicate_of))
    original = parse_task((await kit.store.get(path)).data, path)
    if original.status is TaskStatus.DONE and original.result is not None:
        return Done(original.result)
    reason = f"the task with the same objective, {original.task_id}, is {original.status.value}"
    return Failed(f"{reason}: submit this one again with --again to run it by itself", StatusReason.ESCALATED)


async def _gather(held: HeldLease, kit: Kit, facts: tuple[Fact, ...]) -> _Gathered:
    task = held.task
    ids = [*task.depends_on, *task.children]
    found = {item.id: item for item in await kit.store.get_many([task_path(task_id) for task_id in ids])}
    read = {task_id: parse_task(item.data, item.path) for task_id, item in found.items() if item.data is not None}
    envelope = await kit.mailbox.open(task, held.owner, held.epoch) if task.parent_task_id else None
    return _Gathered(
        tuple(read[task_id] for task_id in task.depends_on if task_id in read),
        tuple(read[task_id] for task_id in task.children if task_id in read),
        envelope,
        facts,
    )


async def _request(task: Task, kit: Kit, gathered: _Gathered, workdir: Path) -> SkillRequest:
    artifacts: list[Artifact] = list(gathered.envelope.artifacts) if gathered.envelope else []
    signals: list[Signal] = list(gathered.envelope.signals) if gathered.envelope else []
    for dependency in gathered.dependencies:
        if dependency.result is not None:
            artifacts += dependency.result.artifacts
            signals += dependency.result.signals
    return SkillRequest(
        task_id=task.task_id,
        session_hash=task.session_hash,
        objective=task.objective,
        role=task.assigned_to,
        context=task.context,
        constraints=task.constraints.model_dump(),
        expected_outcome=task.expected_outcome,
        attachments=task.attachments,
        artifacts=tuple([await _local(artifact, kit) for artifact in artifacts]),
        signals=tuple(signals),
        children=tuple([await _child(child, kit) for child in gathered.children]),
        facts=gathered.facts,
        answers=task.answers,
        roles=tuple(sorted(kit.roles)),
        workdir=workdir,
        now=kit.clock.now(),
    )


async def _child(child: Task, kit: Kit) -> ChildResult:
    result = child.result or TaskResult()
    return ChildResult(
        task_id=child.task_id,
        key=child.plan_key,
        assigned_to=child.assigned_to,
        objective=child.objective,
        status=child.status.value,
        summary=child.summary,
        artifacts=tuple([await _local(artifact, kit) for artifact in result.artifacts]),
        signals=result.signals,
        insights=result.insights,
        confidence=result.confidence,
    )


async def _local(artifact: Artifact, kit: Kit) -> Artifact:
    """An artifact as a skill's process can read it: its content in a local file, or its value in place."""
    if artifact.mime == STORED_VALUE and artifact.uri is not None:
        value = json.loads(await kit.blobs.get(artifact.uri))
        return artifact.model_copy(update={"value": value, "uri": None, "mime": None})
    if artifact.uri is None or artifact.uri.startswith("file://"):
        return artifact
    path = await kit.blobs.local_path(artifact.uri)
    return artifact.model_copy(update={"uri": path.as_uri()})


async def _run(task: Task, kit: Kit, journal: Journal, request: SkillRequest) -> SkillResult:
    # Objective and context never change under a task's id; what a later turn has more is this.
    inputs = [request.answers, [[child.task_id, child.status] for child in request.children]]
    inline = kit.inline.get(task.skill or "")
    if inline is not None:
        execute, name, idempotent = inline, str(task.skill), True
    else:
        card = kit.roles[task.assigned_to]
        skill = router.choose(task.objective, task.skill, card.skills, kit.catalog)
        journal.note("skill_chosen", skill=skill.name, version=skill.version, named=task.skill is not None)
        await journal.flush()
        execute, name, idempotent = _in_process(skill, kit), skill.name, skill.idempotent

    async def step() -> dict[str, Any]:
        result = await execute(request)
        if result.state is SkillState.FAILED:
            raise _SaidFailed(result)
        return (await _published(result, task, kit, request.workdir)).model_dump(mode="json")

    return SkillResult.model_validate(
        await journal.step(f"skill:{name}", inputs, step, idempotent=idempotent, last=True)
    )


def _in_process(skill: Skill, kit: Kit) -> Any:
    async def execute(request: SkillRequest) -> SkillResult:
        request.workdir.mkdir(parents=True, exist_ok=True)
        return await run_skill(skill, request, kit.processes)

    return execute


async def _published(result: SkillResult, task: Task, kit: Kit, workdir: Path) -> SkillResult:
    """Move the files that artifacts name from the work folder to the blob store."""
    published: list[Artifact] = []
    for artifact in result.artifacts:
        update: dict[str, Any] = {} if artifact.source_task_id else {"source_task_id": task.task_id}
        if artifact.uri is not None and artifact.uri.startswith(WORKDIR_URI):
            name = artifact.uri.removeprefix(WORKDIR_URI)
            path = _file_in(workdir, name, artifact)
            update["uri"] = await kit.blobs.put_file(f"{task.session_hash}/{task.task_id}/{name}", path)
        elif artifact.value is not None and artifact.uri is None:
            update |= await _outsourced(artifact, task, kit, len(published))
        published.append(artifact.model_copy(update=update))
    shutil.rmtree(workdir, ignore_errors=True)
    return result.model_copy(update={"artifacts": tuple(published)})


async def _outsourced(artifact: Artifact, task: Task, kit: Kit, number: int) -> dict[str, Any]:
    """Where a large value goes: to the blob store, and back when the artifact is read."""
    content = json.dumps(artifact.value).encode()
    if len(content) <= MAX_INLINE_PAYLOAD_BYTES:
        return {}
    name = f"{task.session_hash}/{task.task_id}/{artifact.type}-{number}.json"
    uri = await kit.blobs.put(name, content)
    return {"value": None, "uri": uri, "mime": STORED_VALUE, "size_bytes": len(content)}


def _file_in(workdir: Path, name: str, artifact: Artifact) -> Path:
    path = (workdir / name).resolve()
    if not path.is_relative_to(workdir.resolve()) or not path.is_file():
        raise SkillFailed(
            f"artifact {artifact.name or artifact.type!r} names {name!r}, which is no file in the workdir"
        )
    return path


def _conclude(task: Task, result: SkillResult) -> Outcome:
    outcome = TaskResult(
        summary=result.summary,
        artifacts=result.artifacts,
        signals=result.signals,
        insights=result.insights,
        confidence=result.confidence,
        next_recommended_actions=result.next_recommended_actions,
    )
    match result.state:
        case SkillState.COMPLETED:
            return Done(outcome)
        case SkillState.DELEGATING:
            return Handoff(result.tasks, resume=True, result=outcome)
        case SkillState.INPUT_REQUIRED:
            if not result.questions:
                raise SkillFailed(f"task {task.task_id}: the skill requires input but asks no question")
            return Waiting(StatusReason.INPUT_REQUIRED, result.summary, result.questions)
        case SkillState.FAILED:
            raise _SaidFailed(result)


def _failure(error: Exception) -> Outcome:
    match error:
        case _SaidFailed(result=result):
            return Retry(result.summary) if result.retryable else Failed(result.summary)
        case StepUncertain():
            return Failed(str(error), StatusReason.ESCALATED)
        case InvalidInput():
            return Failed(str(error))
        case StoreError():
            return Retry(str(error)) if error.retryable else Failed(str(error))
        case _:
            return Retry(_told(error).splitlines()[0] if not isinstance(error, FireswarmError) else str(error))


def _told(error: Exception) -> str:
    if isinstance(error, FireswarmError):
        return str(error)
    return f"{type(error).__name__}: {error}\n" + "".join(traceback.format_tb(error.__traceback__, limit=-6))


def _closing(journal: Journal, outcome: Outcome) -> Sequence[Write]:
    match outcome:
        case Done(result=result) | Handoff(result=result):
            return journal.closing(RunStatus.COMPLETED, result.summary, result, None)
        case Waiting(summary=summary):
            return journal.closing(RunStatus.COMPLETED, f"waits: {summary}", None, None)
        case Retry(error=error) | Failed(error=error):
            return journal.closing(RunStatus.ERROR, error.splitlines()[0] if error else "failed", None, error[:4_000])
        case _:
            return journal.closing(RunStatus.COMPLETED, outcome.summary, None, None)
