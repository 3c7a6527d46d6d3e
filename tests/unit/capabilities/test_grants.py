"""What a task is given: a person may name much, a plan only what the operator gave or offers."""

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


def test_a_persons_task_has_the_roles_capabilities_and_then_its_own() -> None:
    found = grants.grants_for_submitted(CARD, [use("research")])
    assert [each.id for each in found] == ["workspace", "web_fetch", "research"]
    assert grants.grants_for_submitted(CARD, []) == CARD.capabilities


def test_of_one_that_both_have_the_tasks_settings_win_but_for_the_operators() -> None:
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
def test_not_even_a_person_opens_a_door_by_a_task(asked: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="may not set .* only the role card may set that"):
        grants.grants_for_submitted(CARD, [use(asked)])


def test_what_cannot_be_used_is_refused_when_it_is_submitted() -> None:
    with pytest.raises(NotFound, match="unknown capability 'telepathy'"):
        grants.grants_for_submitted(CARD, [use("telepathy")])
    with pytest.raises(ConfigError, match="max_redirects"):
        grants.grants_for_submitted(CARD, [use({"id": "web_fetch", "config": {"max_redirects": -1}})])
    with pytest.raises(ConfigError, match="servers"):
        grants.grants_for_submitted(CARD, [use("mcp")])


def test_a_plan_names_what_the_role_has_or_offers_as_the_operator_set_it() -> None:
    assert grants.grants_for_planned(CARD, ["web_fetch"]) == CARD.capabilities
    assert grants.grants_for_planned(CARD, ["sandbox", "web_fetch"]) == (*CARD.capabilities, *CARD.offers)


def test_a_plan_gives_a_role_no_power_that_nobody_gave_it() -> None:
    with pytest.raises(InvalidInput, match="scout does not offer mcp, research; .* sandbox, web_fetch, workspace"):
        grants.grants_for_planned(CARD, ["research", "mcp", "web_fetch"])
