"""``/v1/agents``: stored agents, each a role with additional capabilities and instructions."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response

from fireswarm.api.models.capabilities import AgentChange, AgentCreate, AgentOut, AgentPage, uses_of
from fireswarm.api.paging import DEFAULT_LIMIT, Cursor, Limit, read_page
from fireswarm.api.problems import Refusal, Refused
from fireswarm.api.reading.entity_tags import TagCondition
from fireswarm.api.session import CurrentSession, InPath
from fireswarm.contracts.swarm.agent import Agent, AgentLife, AgentSpec
from fireswarm.errors import Conflict
from fireswarm.storage.documents.paths import AGENTS
from fireswarm.swarm.submission import stored_agents

router = APIRouter(prefix="/v1/agents", tags=["agents"])

VERSION_TAG = re.compile(r'"([1-9][0-9]{0,9})"')
IfMatch = Annotated[
    str | None,
    Header(description="ETags of the versions you accept; 412 if the agent has another one by now", examples=['"1"']),
]


@router.post("", status_code=201, response_model=AgentOut)
async def create_agent(given: CurrentSession, sent: AgentCreate, response: Response) -> Any:
    """Store an agent. Settings are validated; security settings (`operator_keys`) belong to the role card."""
    spec = AgentSpec(
        name=sent.name,
        role=sent.role,
        system_prompt=sent.system_prompt,
        capabilities=uses_of(sent.capabilities),
        status=sent.status,
    )
    agent = await stored_agents.create(given.swarm.parts.store, given.swarm.parts.roles, given.session, spec)
    response.headers["Location"] = f"/v1/agents/{agent.agent_id}"
    return _agent_response(agent, response)


@router.get("", response_model=AgentPage)
async def list_agents(
    given: CurrentSession,
    status: Annotated[AgentLife | None, Query(description="filter by status", examples=["active"])] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Any:
    """List stored agents, newest first."""
    page = await read_page(
        given.swarm, AGENTS, "created_at", stored_agents.parse_agent, limit=limit, cursor=cursor, status=status
    )
    return AgentPage.model_validate(page.fields())


@router.get("/{agent_id}", response_model=AgentOut)
async def get_agent(given: CurrentSession, agent_id: InPath, response: Response) -> Any:
    """Show one agent."""
    return _agent_response(await stored_agents.get(given.swarm.parts.store, given.session, agent_id), response)


@router.patch("/{agent_id}", response_model=AgentOut)
async def change_agent(
    given: CurrentSession, agent_id: InPath, sent: AgentChange, response: Response, if_match: IfMatch = None
) -> Any:
    """Replace the given fields. Tasks submitted earlier keep the old settings."""
    versions = _versions(if_match)
    try:
        agent = await stored_agents.change(
            given.swarm.parts.store, given.swarm.parts.roles, given.session, agent_id, sent.sent_fields(), versions
        )
    except Conflict as conflict:
        raise _stale(conflict) from conflict
    return _agent_response(agent, response)


@router.delete("/{agent_id}", status_code=204)
async def delete_agent(given: CurrentSession, agent_id: InPath, if_match: IfMatch = None) -> None:
    """Delete an agent. Its tasks continue."""
    try:
        await stored_agents.delete(given.swarm.parts.store, given.session, agent_id, _versions(if_match))
    except Conflict as conflict:
        raise _stale(conflict) from conflict


def _agent_response(agent: Agent, response: Response) -> AgentOut:
    response.headers["ETag"] = f'"{agent.version}"'
    return AgentOut.model_validate(agent)


def _versions(if_match: str | None) -> frozenset[int] | None:
    """Return the versions that an If-Match header names; None for any. Weak tags and others match no version."""
    condition = TagCondition.parse(["*" if if_match is None else if_match])
    if condition.any_version:
        return None
    return frozenset(int(match[1]) for tag in condition.strong if (match := VERSION_TAG.fullmatch(tag)))


def _stale(conflict: Conflict) -> Refused:
    return Refused(Refusal(412, "precondition_failed", str(conflict)))
