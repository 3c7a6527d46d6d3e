"""``/v1/capabilities``: the capabilities that roles, tasks and agents can use."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path

from fireswarm.api.models.capabilities import CapabilityDetail, CapabilityList, CapabilityOut, ToolOut
from fireswarm.api.session import CurrentSession
from fireswarm.capabilities import registry
from fireswarm.capabilities.describe import tools_of

router = APIRouter(prefix="/v1/capabilities", tags=["capabilities"])


@router.get("", response_model=CapabilityList)
async def list_capabilities() -> Any:
    """List all capabilities by id. Not paged."""
    known = registry().known
    items = [CapabilityOut.model_validate(known[name].info) for name in sorted(known)]
    return CapabilityList(items=tuple(items), total=len(items))


@router.get("/{capability_id}", response_model=CapabilityDetail)
async def get_capability(
    given: CurrentSession,
    capability_id: Annotated[str, Path(max_length=50, description="capability id", examples=["web_fetch"])],
) -> Any:
    """Show one capability with its settings and tools."""
    capability = registry().get(capability_id)
    tools = await tools_of(capability, given.swarm.parts.clock)
    return CapabilityDetail(
        **capability.info.model_dump(),
        needs=capability.needs,
        settings=capability.config.model_json_schema().get("properties", {}),
        operator_keys=capability.operator_keys,
        tools=None if tools is None else tuple(ToolOut.model_validate(tool) for tool in tools),
    )
