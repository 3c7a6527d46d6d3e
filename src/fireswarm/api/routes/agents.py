"""``/v1/agents``: stored agents, each a role with capabilities and a system prompt of its own."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response

from fireswarm.api.models.capabilities import AgentChange, AgentCreate, AgentOut, AgentPage, uses_of
from fireswarm.api.paging import DEFAULT_LIMIT, Cursor, Limit, read_page
from fireswarm.api.problems import Refusal, Refused
from fireswarm.api.session import CurrentSession, InPath
from fireswarm.contracts.swarm.agent import Agent, AgentLife, AgentSpec
from fireswarm.errors import Conflict
from fireswarm.storage.documents.paths import AGENTS
from fireswarm.swarm.submission import stored_agents

router = APIRouter(prefix="/v1/agents", tags=["agents"])

IfMatch = Annotated[
    str | None,
    Header(description="the ETag that was read: nothing is written if the agent changed since", examples=['"1"']),
]


@router.post("", status_code=201, response_model=AgentOut)
async def create_agent(given: CurrentSession, sent: AgentCreate, response: Response) -> Any:
    """Store an agent. Its capabilities are held to their schemas; settings that open doors stay with the role card."""
    spec = AgentSpec(
        name=sent.name,
        role=sent.role,
        system_prompt=sent.system_prompt,
        capabilities=uses_of(sent.capabilities),
        status=sent.status,
    )
    agent = await stored_agents.create(given.swarm, given.session, spec)
    response.headers["Location"] = f"/v1/agents/{agent.agent_id}"
    return _agent_response(agent, response)


@router.get("", response_model=AgentPage)
async def list_agents(
    given: CurrentSession,
    status: Annotated[AgentLife | None, Query(description="only those", examples=["active"])] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Any:
    """List stored agents, the newest first."""
    found = await read_page(
        given.swarm, AGENTS, "created_at", stored_agents.parse_agent, limit=limit, cursor=cursor, status=status
    )
    return AgentPage.model_validate(found.fields())


@router.get("/{agent_id}", response_model=AgentOut)
async def get_agent(given: CurrentSession, agent_id: InPath, response: Response) -> Any:
    """Show one agent."""
    return _agent_response(await stored_agents.get(given.swarm, given.session, agent_id), response)


@router.patch("/{agent_id}", response_model=AgentOut)
async def change_agent(
    given: CurrentSession, agent_id: InPath, sent: AgentChange, response: Response, if_match: IfMatch = None
) -> Any:
    """Replace the fields that are sent; tasks that were submitted before keep what they were given."""
    version = _version(if_match)
    try:
        agent = await stored_agents.change(given.swarm, given.session, agent_id, sent.sent_fields(), version)
    except Conflict as conflict:
        raise _stale(conflict) from conflict
    return _agent_response(agent, response)


@router.delete("/{agent_id}", status_code=204)
async def delete_agent(given: CurrentSession, agent_id: InPath, if_match: IfMatch = None) -> None:
    """Remove an agent; its tasks go on."""
    try:
        await stored_agents.delete(given.swarm, given.session, agent_id, _version(if_match))
    except Conflict as conflict:
        raise _stale(conflict) from conflict


def _agent_response(agent: Agent, response: Response) -> AgentOut:
    response.headers["ETag"] = f'"{agent.version}"'
    return AgentOut.model_validate(agent)


def _version(if_match: str | None) -> int | None:
    """The version that an If-Match header names; one that is no version matches nothing."""
    if if_match is None or if_match.strip() == "*":
        return None
    text = if_match.strip().strip('"')
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _stale(conflict: Conflict) -> Refused:
    return Refused(Refusal(412, "precondition_failed", str(conflict)))
