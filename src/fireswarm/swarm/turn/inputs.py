"""Gather the inputs of a skill: dependencies, children, the envelope, facts and answers.

A skill gets local files and full values; documents hold URIs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from fireswarm.contracts.foreign.call import call_foreign
from fireswarm.contracts.ports import Blobs
from fireswarm.contracts.skills.artifact import STORED_VALUE, Artifact, Attachment, Signal, is_link
from fireswarm.contracts.skills.skill import CALL_KEY, ChildResult, Fact, SkillRequest
from fireswarm.contracts.swarm.envelope import Envelope
from fireswarm.contracts.swarm.task import NO_DEADLINE, Task, TaskResult, TaskStatus
from fireswarm.errors import InvalidInput, SkillFailed
from fireswarm.runs.skill_runner import FILE_KEYS
from fireswarm.runs.steps import find_lost_answers, fork_limits
from fireswarm.storage.documents.paths import task_path
from fireswarm.storage.documents.read import parse_task_snapshot
from fireswarm.storage.memory import Memory
from fireswarm.swarm.roles.hooks import HOOKS, NO_HOOKS
from fireswarm.swarm.turn.given.files import is_given_here, trusted_attachments
from fireswarm.swarm.turn.given.workspace import find_objective_folder
from fireswarm.swarm.turn.state import Relatives, Turn

_CALL = re.compile(rf"{re.escape(CALL_KEY)}0\.(\d+)")


async def recall_facts(memory: Memory, task: Task) -> list[Fact]:
    """Return the facts of the role's hooks. Raises SkillFailed if the code of a hook cancels itself."""
    what = f"a hook of the role {task.assigned_to}"
    hooks = HOOKS.get(task.assigned_to, NO_HOOKS).facts
    return [fact for hook in hooks for fact in await call_foreign(partial(hook, memory, task), what, SkillFailed)]


async def gather_inputs(turn: Turn) -> SkillRequest:
    """Return the request for the turn's skill. Adds the envelope's acknowledgement to the settling commit."""
    task, swarm = turn.task, turn.swarm
    facts = await recall_facts(swarm.memory, task)
    earlier = await swarm.board.read_earlier(task) if task.continues is not None else ()
    if task.thread_id and (not earlier or earlier[0].task_id != task.thread_id):
        raise InvalidInput(f"thread_id names {task.thread_id}, which is not the first task of this conversation")
    if task.continues and not earlier:
        raise InvalidInput(f"continues names task {task.continues}, which this session does not have")
    is_forked = bool(earlier) and any(each.fork_before for each in (*earlier, task))
    if is_forked and (lost := find_lost_answers(turn.journal.known, task.fork_before or 0)):
        raise InvalidInput(
            f"this task goes on with others, and answer {lost} of their model is gone with a task or a run: submit the "
            f"work as a new task"
        )
    dependencies, children = await _relatives(turn, [child for item in (*earlier, task) for child in item.children])
    children = _known_to_fork(task, earlier, children) if earlier else children
    envelope = await _open_envelope(turn)
    if earlier:
        envelope = await swarm.mailbox.payload_of(earlier[0])  # the conversation began with it
    turn.relatives = Relatives(dependencies, children, envelope, earlier)
    artifacts: list[Artifact] = list(envelope.artifacts) if envelope else []
    signals: list[Signal] = list(envelope.signals) if envelope else []
    for dependency in dependencies:
        if dependency.result is not None:
            artifacts += dependency.result.artifacts
            signals += dependency.result.signals
    _check_given_paths(task)
    if task.parent_task_id is not None:
        turn.objective_folder = await find_objective_folder(turn)
    read_only = task.constraints.read_only or swarm.settings.runtime.profile == "read_only"
    return SkillRequest(
        task_id=task.task_id,
        session_hash=task.session_hash,
        objective=task.objective,
        role=task.assigned_to,
        context=task.context,
        constraints={**task.constraints.model_dump(), "read_only": read_only},
        expected_outcome=task.expected_outcome,
        attachments=_attachments(task, swarm.blobs),
        artifacts=tuple([await fetch_artifact(turn, artifact) for artifact in artifacts]),
        signals=tuple(signals),
        children=tuple([await child_result(turn, child) for child in children]),
        facts=tuple(facts),
        answers=task.answers,
        roles=tuple(sorted(swarm.roles)),
        epoch=turn.lease.epoch,
        attempt=task.attempt,
        deadline=turn.lease.cut_off_at or (None if task.deadline == NO_DEADLINE else task.deadline),
        workdir=swarm.workdir / turn.lease.run_id,
        now=swarm.clock.now(),
    )


def _attachments(task: Task, blobs: Blobs) -> tuple[Attachment, ...]:
    """Return the attachments that code may read: all that a person gave here.

    Otherwise these are links, files of buckets, and files of the session, which a server stored.
    """
    if not task.attachments or is_given_here(task):
        return task.attachments
    trusted = trusted_attachments(task)
    return tuple(
        item
        for item in task.attachments
        if item.uri in trusted or is_link(item.uri) or blobs.holds(item.uri, task.session_hash)
    )


def _check_given_paths(task: Task) -> None:
    """Raise InvalidInput if a planned task's folder or file is a link now: it was checked before the link was there."""
    for name in ("path", *FILE_KEYS) if task.parent_task_id is not None else ():
        path = Path(str(task.context.get(name) or ""))
        if path.is_absolute() and path.resolve() != path:
            raise InvalidInput(f"context.{name} names {path}, which has become a link to another place")


async def fetch_artifact(turn: Turn, artifact: Artifact) -> Artifact:
    """Return the artifact in a form that a skill's process can read: a local file, the value itself, or a link.

    The address of a file that is not the session's is left out: a document may name any file.
    """
    if artifact.uri is None or is_link(artifact.uri):
        return artifact
    blobs = turn.swarm.blobs
    if not blobs.holds(artifact.uri, turn.task.session_hash):
        told = f"not given, since its address is not one of this session's files. {artifact.summary}".rstrip()
        return artifact.model_copy(update={"uri": None, "summary": told})
    if artifact.mime == STORED_VALUE:
        value = json.loads(await blobs.get(artifact.uri))
        return artifact.model_copy(update={"value": value, "uri": None, "mime": None})
    place = await blobs.local_path(artifact.uri)
    local = f"file://{place}" if artifact.uri.startswith("file://") else place.as_uri()
    turn.origins[local] = artifact.uri
    return artifact.model_copy(update={"uri": local})


async def _open_envelope(turn: Turn) -> Envelope | None:
    task = turn.task
    if task.message_id:
        return await turn.swarm.mailbox.payload_of(task)
    if task.parent_task_id is None:
        return None
    envelope = await turn.swarm.mailbox.open(task, turn.lease.owner, turn.lease.epoch)
    if envelope is not None:
        turn.writes += turn.swarm.mailbox.open_envelope_writes(task)
    return envelope


def _known_to_fork(task: Task, earlier: Sequence[Task], children: Sequence[Task]) -> list[Task]:
    """Return the children; of a task that was forked, only calls that ended and were made before the fork."""
    limits = fork_limits([following.fork_before for following in (*earlier, task)][1:])
    limit_of = {item.task_id: limit for item, limit in zip(earlier, limits, strict=True)}

    def is_known(child: Task) -> bool:
        if not (limit := limit_of.get(child.parent_task_id or "", 0)):
            return True
        call = _CALL.match(child.plan_key)
        return call is not None and int(call[1]) < limit and child.status is TaskStatus.DONE

    return [child for child in children if is_known(child)]


async def _relatives(turn: Turn, child_ids: Sequence[str]) -> tuple[list[Task], list[Task]]:
    """Read the task's dependencies and children; missing ones and those of other sessions are skipped."""
    task = turn.task
    paths = [task_path(task_id) for task_id in (*task.depends_on, *child_ids)]
    snapshots = await turn.swarm.store.get_many(paths)
    read = [parse_task_snapshot(item) for item in snapshots if item.data is not None]
    tasks = {item.task_id: item for item in read if item.session_hash == task.session_hash}
    return (
        [tasks[task_id] for task_id in task.depends_on if task_id in tasks],
        [tasks[task_id] for task_id in child_ids if task_id in tasks],
    )


async def child_result(turn: Turn, child: Task) -> ChildResult:
    """Return a child task with its result and its artifacts in readable form."""
    result = child.result or TaskResult()
    return ChildResult(
        task_id=child.task_id,
        key=child.plan_key,
        assigned_to=child.assigned_to,
        objective=child.objective,
        status=child.status.value,
        summary=child.summary,
        artifacts=tuple([await fetch_artifact(turn, artifact) for artifact in result.artifacts]),
        signals=result.signals,
        insights=result.insights,
        confidence=result.confidence,
    )
