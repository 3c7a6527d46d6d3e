"""Capabilities granted to a task: people may add most of them, plans only those that the role has or offers."""

from __future__ import annotations

from typing import Any

import pytest

from fireswarm.capabilities import grants
from fireswarm.contracts.skills.capability import CapabilityUse
from fireswarm.contracts.swarm.role import RoleCard
from fireswarm.errors import ConfigError, InvalidInput, NotFound

OWN: dict[str, Any] = {
    "id": "web_fetch",
    "config": {"allow_hosts": ["wiki.example"], "body_seconds": 5},
    "prefix": "w_",
}
CARD = RoleCard.model_validate(
    {
        "name": "scout",
        "description": "looks",
        "skills": ["noop"],
        "capabilities": ["workspace", OWN],
        "offers": [{"id": "sandbox", "config": {"timeout_seconds": 9}}],
    }
)


def use(given: Any) -> CapabilityUse:
    return CapabilityUse.model_validate(given)


def test_submitted_task_has_the_roles_capabilities_before_its_own() -> None:
    found = grants.grants_for_submitted(CARD, [use("research")])
    assert [each.id for each in found] == ["workspace", "web_fetch", "research"]
    assert grants.grants_for_submitted(CARD, []) == CARD.capabilities


def test_task_settings_override_the_roles_except_operator_keys() -> None:
    found = grants.grants_for_submitted(CARD, [use({"id": "web_fetch", "config": {"max_redirects": 1}})])
    assert found[1] == use(
        {"id": "web_fetch", "config": {"allow_hosts": ["wiki.example"], "max_redirects": 1}, "prefix": "w_"}
    )


@pytest.mark.parametrize(
    "asked",
    [
        {"id": "web_fetch", "config": {"allow_hosts": ["169.254.169.254"]}},
        {"id": "mcp", "config": {"servers": {"x": {"command": "/bin/sh"}}}},
        {"id": "sandbox", "config": {"memory_bytes": 10**12}},
    ],
)
def test_submitted_task_may_not_set_operator_keys(asked: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="may not set .* only the role card may do that"):
        grants.grants_for_submitted(CARD, [use(asked)])


def test_unusable_capability_is_rejected_on_submit() -> None:
    with pytest.raises(NotFound, match="unknown capability 'telepathy'"):
        grants.grants_for_submitted(CARD, [use("telepathy")])
    with pytest.raises(ConfigError, match="max_redirects"):
        grants.grants_for_submitted(CARD, [use({"id": "web_fetch", "config": {"max_redirects": -1}})])
    with pytest.raises(ConfigError, match="servers"):
        grants.grants_for_submitted(CARD, [use("mcp")])


def test_plan_gets_offers_with_the_operators_settings() -> None:
    assert grants.grants_for_planned(CARD, ["web_fetch"]) == CARD.capabilities
    assert grants.grants_for_planned(CARD, ["sandbox", "web_fetch"]) == (*CARD.capabilities, *CARD.offers)


def test_plan_may_not_name_capabilities_that_are_not_offered() -> None:
    with pytest.raises(InvalidInput, match="scout does not offer mcp, research; .* sandbox, web_fetch, workspace"):
        grants.grants_for_planned(CARD, ["research", "mcp", "web_fetch"])
