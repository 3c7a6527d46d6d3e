"""Stored agents: create, read, change by compare-and-set, delete. Each agent belongs to one session."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from typing import Any

from pydantic import ValidationError

from fireswarm.contracts.base import explain_validation
from fireswarm.contracts.ports import SERVER_TIME, Create, Snapshot, Store, Update
from fireswarm.contracts.swarm.agent import Agent, AgentLife, AgentSpec
from fireswarm.contracts.swarm.task import TaskSpec
from fireswarm.errors import Conflict, InvalidInput, NotFound, StoreUnavailable
from fireswarm.redaction import environment_redactor
from fireswarm.storage.documents.build import plain
from fireswarm.storage.documents.change import ATTEMPTS, delete_as_read
from fireswarm.storage.documents.paths import agent_path
from fireswarm.storage.documents.read import shows
from fireswarm.swarm.submission.check import Roles, check_role

FIELDS = ("name", "role", "system_prompt", "capabilities", "status")


async def create(store: Store, roles: Roles, session: str, spec: AgentSpec) -> Agent:
    """Store an agent. Raises InvalidInput if its role or its capabilities do not fit this swarm."""
    check_role(roles, spec.role, spec.capabilities)
    agent_id = str(uuid.uuid4())
    fields = _fields(spec) | {
        "agent_id": agent_id,
        "session_hash": session,
        "version": 1,
        "created_at": SERVER_TIME,
        "updated_at": SERVER_TIME,
    }
    try:
        await store.commit([Create(agent_path(agent_id), fields)])
    except Conflict as conflict:  # the id is random, so an existing document is this call's own
        if not conflict.ambiguous:
            raise
    return await get(store, session, agent_id)


async def get(store: Store, session: str, agent_id: str) -> Agent:
    """Read an agent of the session. Raises NotFound."""
    return parse_agent(await _read(store, session, agent_id))


async def change(
    store: Store,
    roles: Roles,
    session: str,
    agent_id: str,
    changed: Mapping[str, Any],
    if_versions: Collection[int] | None = None,
) -> Agent:
    """Replace the named fields of an agent.

    Raises InvalidInput if the result does not fit, Conflict if the version is none of *if_versions*, and
    StoreUnavailable after repeated conflicts.
    """
    for _ in range(ATTEMPTS):
        snapshot = await _read(store, session, agent_id)
        agent = parse_agent(snapshot)
        _same(agent, if_versions)
        merged = {name: getattr(agent, name) for name in FIELDS} | dict(changed)
        spec = AgentSpec.model_validate(merged)
        if spec.status is AgentLife.ACTIVE or "role" in changed or "capabilities" in changed:
            check_role(roles, spec.role, spec.capabilities)
        fields = _fields(spec) | {"version": agent.version + 1, "updated_at": SERVER_TIME}
        try:
            await store.commit([Update(snapshot.path, fields, snapshot.update_time)])
        except Conflict as conflict:
            if not (conflict.ambiguous and shows((await store.get(agent_path(agent_id))).data, fields)):
                continue
        return await get(store, session, agent_id)
    raise StoreUnavailable(f"agent {agent_id} keeps changing: nothing was written, try again")


def assign(agent: Agent, spec: TaskSpec) -> TaskSpec:
    """Return *spec* as a task for *agent*, with the agent's role, instructions and capabilities.

    A capability of *spec* overrides the agent's. The same objective for another agent, or for a changed one, is a
    different task. Raises InvalidInput for an archived agent.
    """
    if agent.status is not AgentLife.ACTIVE:
        raise InvalidInput(f"agent {agent.agent_id} is archived: set its status to active to give it tasks")
    uses = {use.id: use for use in agent.capabilities} | {use.id: use for use in spec.capabilities}
    return spec.model_copy(
        update={
            "assigned_to": agent.role,
            "for_agent": agent.agent_id,
            "instructions": agent.system_prompt,
            "capabilities": tuple(uses.values()),
            "fresh_key": f"{agent.agent_id}.{agent.version}/{spec.fresh_key}",
        }
    )


async def delete(store: Store, session: str, agent_id: str, if_versions: Collection[int] | None = None) -> None:
    """Delete an agent; its tasks continue unchanged. Raises NotFound, and Conflict as ``change`` does."""

    async def read() -> Snapshot:
        snapshot = await _read(store, session, agent_id)
        _same(parse_agent(snapshot), if_versions)
        return snapshot

    await delete_as_read(store, read)


def parse_agent(snapshot: Snapshot) -> Agent:
    """Parse a document of ``agents``. Raises InvalidInput with the faulty field."""
    try:
        return Agent.model_validate(snapshot.data or {})
    except ValidationError as error:
        raise InvalidInput(f"{snapshot.path} is not an agent: {explain_validation(error)}") from error


async def _read(store: Store, session: str, agent_id: str) -> Snapshot:
    snapshot = await store.get(agent_path(agent_id))
    if snapshot.data is None or snapshot.data.get("session_hash") != session:
        raise NotFound(f"there is no agent {agent_id}")
    return snapshot


def _same(agent: Agent, if_versions: Collection[int] | None) -> None:
    if if_versions is not None and agent.version not in if_versions:
        wanted = " or ".join(map(str, sorted(if_versions))) or "one that the request names"
        raise Conflict(f"agent {agent.agent_id} has version {agent.version}, not {wanted}: read it again")


def _fields(spec: AgentSpec) -> dict[str, Any]:
    """Return the stored fields, including empty ones, since a change may clear a field.

    The name is redacted here; the store redacts the other fields.
    """
    fields = {name: getattr(spec, name) for name in FIELDS}
    return fields | {
        "name": environment_redactor().clean(spec.name),
        "capabilities": [plain(use) for use in spec.capabilities],
        "status": spec.status.value,
    }
