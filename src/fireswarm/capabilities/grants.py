"""What a task is given: the capabilities of its role, and those that it names and may have. Pure.

A person who submits a task may name any capability, but not set what opens doors: which hosts are reached, which
programs are started, how much of the machine is taken. That is the operator's, in the role card. A task that a model
planned may name only what the role has or offers, as the operator configured it: no plan gives a role power that nobody
gave it.
"""

from __future__ import annotations

from collections.abc import Sequence

from fireswarm.capabilities.registry import Registry, registry_for
from fireswarm.contracts.skills.capability import CapabilityUse
from fireswarm.contracts.swarm.role import RoleCard
from fireswarm.errors import ConfigError, InvalidInput, NotFound


def grants_for_submitted(card: RoleCard, asked: Sequence[CapabilityUse]) -> tuple[CapabilityUse, ...]:
    """The capabilities of a task that a person submitted: the role's, then the task's.

    Of one that both have, the role's place and the operator's keys stay, and the rest is the task's. Raises
    InvalidInput for a key that is the operator's; NotFound and ConfigError where they cannot be used.
    """
    registry = registry_for((*card.capabilities, *asked))
    uses = {use.id: use for use in card.capabilities}
    for use in asked:
        uses[use.id] = _merge_use(registry, uses.get(use.id), use)
    found = tuple(uses.values())
    registry.check(found)
    return found


def check(card: RoleCard, asked: Sequence[CapabilityUse]) -> None:
    """Raise InvalidInput for what a person asks for and cannot be given, whatever the reason."""
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
            f"a task may not set {', '.join(taken)} of the capability {asked.id}: only the role card may set that"
        )
    held = {name: value for name, value in (own.config if own else {}).items() if name in kept}
    prefix = asked.prefix or (own.prefix if own else "")
    return CapabilityUse(id=asked.id, config=held | asked.config, prefix=prefix)


def grants_for_planned(card: RoleCard, names: Sequence[str]) -> tuple[CapabilityUse, ...]:
    """The capabilities of a task that was planned: the role's, then those of its offers that the plan names.

    InvalidInput names what the role neither has nor offers.
    """
    offered = {use.id: use for use in card.offers}
    uses = {use.id: use for use in card.capabilities}
    if missing := sorted(set(names) - uses.keys() - offered.keys()):
        raise InvalidInput(
            f"the role {card.name} does not offer {', '.join(missing)}; a plan can name "
            f"{', '.join(sorted(uses.keys() | offered.keys())) or 'none'}"
        )
    return tuple((uses | {name: offered[name] for name in names if name not in uses}).values())
