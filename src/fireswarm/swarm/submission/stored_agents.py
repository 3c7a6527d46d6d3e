"""Stored agents: made, changed by compare-and-set, removed, and given tasks. Nothing crosses a session."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from fireswarm.contracts.base import explain_validation
from fireswarm.contracts.ports import SERVER_TIME, Create, Delete, Snapshot, Store, Update
from fireswarm.contracts.swarm.agent import Agent, AgentLife, AgentSpec
from fireswarm.errors import Conflict, InvalidInput, NotFound, StoreUnavailable
from fireswarm.redaction import environment_redactor
from fireswarm.storage.documents.build import plain
from fireswarm.storage.documents.paths import agent_path
from fireswarm.swarm.submission.check import Roles, check_agent

ATTEMPTS = 8
"""Of a change, when others change the same agent at the same moment."""

FIELDS = ("name", "role", "system_prompt", "capabilities", "status")


async def create(store: Store, roles: Roles, session: str, spec: AgentSpec) -> Agent:
    """Store an agent; InvalidInput where its role or its capabilities do not fit this swarm."""
    check_agent(roles, spec)
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
    except Conflict as conflict:  # the id is random: if it exists, an attempt came through unseen
        if not conflict.ambiguous:
            raise
    return await get(store, session, agent_id)


async def get(store: Store, session: str, agent_id: str) -> Agent:
    """Read an agent of the session; NotFound when there is none."""
    return (await _load(store, session, agent_id))[0]


async def change(
    store: Store, roles: Roles, session: str, agent_id: str, changed: Mapping[str, Any], if_version: int | None = None
) -> Agent:
    """Replace the named fields; InvalidInput when the whole does not fit, Conflict when *if_version* is not it."""
    for _ in range(ATTEMPTS):
        agent, version = await _load(store, session, agent_id)
        _same(agent, if_version)
        merged = {name: getattr(agent, name) for name in FIELDS} | dict(changed)
        spec = AgentSpec.model_validate(merged)
        if spec.status is AgentLife.ACTIVE or "role" in changed or "capabilities" in changed:
            check_agent(roles, spec)
        fields = _fields(spec) | {"version": agent.version + 1, "updated_at": SERVER_TIME}
        try:
            await store.commit([Update(agent_path(agent_id), fields, version)])
        except Conflict:
            continue
        return await get(store, session, agent_id)
    raise StoreUnavailable(f"agent {agent_id} keeps changing: nothing was written, try again")


async def delete(store: Store, session: str, agent_id: str, if_version: int | None = None) -> None:
    """Remove an agent; its tasks go on with what they were given. NotFound, or Conflict as for ``change``."""
    agent, _ = await _load(store, session, agent_id)
    _same(agent, if_version)
    await store.commit([Delete(agent_path(agent_id))])


def parse_agent(snapshot: Snapshot) -> Agent:
    """Read a document of ``agents``; InvalidInput names what is wrong with it."""
    try:
        return Agent.model_validate(snapshot.data or {})
    except ValidationError as error:
        raise InvalidInput(f"{snapshot.path} is not an agent: {explain_validation(error)}") from error


async def _load(store: Store, session: str, agent_id: str) -> tuple[Agent, Any]:
    snapshot = await store.get(agent_path(agent_id))
    if snapshot.data is None or snapshot.data.get("session_hash") != session:
        raise NotFound(f"there is no agent {agent_id}")
    return parse_agent(snapshot), snapshot.update_time


def _same(agent: Agent, if_version: int | None) -> None:
    if if_version is not None and agent.version != if_version:
        raise Conflict(f"agent {agent.agent_id} has version {agent.version}, not {if_version}: read it again")


def _fields(spec: AgentSpec) -> dict[str, Any]:
    """What is stored, also what is empty: a change may have emptied it. The store cleans all but the name."""
    fields = {name: getattr(spec, name) for name in FIELDS}
    return fields | {
        "name": environment_redactor().clean(spec.name),
        "capabilities": [plain(use) for use in spec.capabilities],
        "status": spec.status.value,
    }
