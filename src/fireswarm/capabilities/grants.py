"""Grant capabilities to a task: those of its role, and those that it requests and is allowed to have. Pure.

A person who submits a task may name any capability, but may not set its security settings: allowed hosts, programs to
start, resource limits. Only the operator sets them, in the role card. A task planned by a model may name only
capabilities that the role has or offers, with the operator's configuration, so a plan never grants more than the
operator did.
"""

from __future__ import annotations

from collections.abc import Sequence

from fireswarm.capabilities.registry import Registry, registry_for
from fireswarm.contracts.skills.capability import CapabilityUse
from fireswarm.contracts.swarm.role import RoleCard
from fireswarm.errors import ConfigError, InvalidInput, NotFound


def grants_for_submitted(card: RoleCard, asked: Sequence[CapabilityUse]) -> tuple[CapabilityUse, ...]:
    """Return the capabilities of a submitted task: the role's, then the task's.

    For a capability that both name, the position and the operator's keys come from the role, the other settings from
    the task. Raises InvalidInput if the task sets an operator's key; NotFound and ConfigError for an unusable
    capability.
    """
    registry = registry_for((*card.capabilities, *asked))
    uses = {use.id: use for use in card.capabilities}
    for use in asked:
        uses[use.id] = _merge_use(registry, uses.get(use.id), use)
    merged = tuple(uses.values())
    registry.check(merged)
    return merged


def check(card: RoleCard, asked: Sequence[CapabilityUse]) -> None:
    """Raise InvalidInput, for any reason, if a submitted task cannot have the capabilities that it names."""
    if not asked:
        return
    names = [use.id for use in asked]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidInput(f"capabilities are listed twice: {', '.join(twice)}")
    try:
        grants_for_submitted(card, asked)
    except (ConfigError, NotFound) as error:
        raise InvalidInput(str(error)) from error


def _merge_use(registry: Registry, own: CapabilityUse | None, asked: CapabilityUse) -> CapabilityUse:
    kept = registry.get(asked.id).operator_keys
    if taken := sorted(set(kept) & set(asked.config)):
        raise InvalidInput(
            f"a task may not set {', '.join(taken)} of the capability {asked.id}: only the role card may do that"
        )
    config = {name: value for name, value in (own.config if own else {}).items() if name in kept}
    prefix = asked.prefix or (own.prefix if own else "")
    return CapabilityUse(id=asked.id, config=config | asked.config, prefix=prefix)


def grants_for_planned(card: RoleCard, names: Sequence[str]) -> tuple[CapabilityUse, ...]:
    """Return the capabilities of a planned task: the role's own, then the offered ones that the plan names.

    Raises InvalidInput for capabilities that the role neither has nor offers.
    """
    offered = {use.id: use for use in card.offers}
    uses = {use.id: use for use in card.capabilities}
    if missing := sorted(set(names) - uses.keys() - offered.keys()):
        raise InvalidInput(
            f"the role {card.name} does not offer {', '.join(missing)}; a plan can name "
            f"{', '.join(sorted(uses.keys() | offered.keys())) or 'none'}"
        )
    return tuple((uses | {name: offered[name] for name in names if name not in uses}).values())
