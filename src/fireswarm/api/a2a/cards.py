"""Agent cards: the name, skills, addresses and authentication of a role, as the protocol describes an agent."""

from __future__ import annotations

from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    HTTPAuthSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)
from a2a.utils.constants import PROTOCOL_VERSION_1_0, TransportProtocol

from fireswarm.contracts.swarm.role import RoleCard
from fireswarm.redaction import Redactor
from fireswarm.settings.packaged import __version__
from fireswarm.swarm.parts import SwarmParts

PREFIX = "/a2a"
"""Beginning of the path of each agent: ``/a2a/ROLE``."""

BEARER = "bearer"
TEXT, JSON, BYTES = "text/plain", "application/json", "application/octet-stream"

BINDINGS = (
    (TransportProtocol.JSONRPC, PROTOCOL_VERSION_1_0),
    (TransportProtocol.HTTP_JSON, PROTOCOL_VERSION_1_0),
)
"""The ways to call an agent, the preferred one first. All have the same address."""


def agent_path(role: str) -> str:
    """Return the path of a role's agent."""
    return f"{PREFIX}/{role}"


def make_card(parts: SwarmParts, role: RoleCard, redactor: Redactor, base: str) -> AgentCard:
    """Return the card of a role; *base* is the address of the server, such as ``http://127.0.0.1:8093``."""
    url = f"{base}{agent_path(role.name)}"
    scheme = HTTPAuthSecurityScheme(scheme=BEARER, description="the token of the server")
    return AgentCard(
        name=role.name,
        description=redactor.clean(role.description),
        version=__version__,
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding=binding.value, protocol_version=version)
            for binding, version in BINDINGS
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=False, extended_agent_card=False),
        security_schemes={BEARER: SecurityScheme(http_auth_security_scheme=scheme)},
        security_requirements=[SecurityRequirement(schemes={BEARER: StringList()})],
        default_input_modes=[TEXT, JSON, BYTES],
        default_output_modes=[TEXT, JSON, BYTES],
        skills=_skills(parts, role, redactor),
    )


def _skills(parts: SwarmParts, role: RoleCard, redactor: Redactor) -> list[AgentSkill]:
    """Return the skills of a role; a role without any, which works by its model alone, is its own skill."""
    skills = [
        AgentSkill(
            id=name,
            name=name,
            description=redactor.clean(skill.description if (skill := parts.catalog.skills.get(name)) else name),
            tags=[*(skill.tags if skill else ()), role.name],
        )
        for name in role.skills
    ]
    own = AgentSkill(id=role.name, name=role.name, description=redactor.clean(role.description), tags=[role.name])
    return skills or [own]
