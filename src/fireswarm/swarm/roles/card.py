"""Role cards: ``roles/<name>/ROLE.md``, with frontmatter for the engine and a prompt for the model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml
from pydantic import ValidationError

from fireswarm.contracts.base import explain_validation
from fireswarm.contracts.frontmatter import explain_yaml, split_frontmatter
from fireswarm.contracts.swarm.role import RoleCard
from fireswarm.errors import ConfigError
from fireswarm.settings import Settings
from fireswarm.settings.providers import is_paid_by_account, split_provider
from fireswarm.settings.swarm import CONFIG_FILE


def load_card(path: Path) -> RoleCard:
    """Read one ROLE.md. Raises ConfigError with the file and the key."""
    try:
        fields, body = split_frontmatter(path.read_text(encoding="utf-8"))
        card = RoleCard.model_validate(fields | {"prompt": body})
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: the frontmatter is not valid YAML: {explain_yaml(error)}") from error
    except ValueError as error:
        detail = explain_validation(error) if isinstance(error, ValidationError) else str(error)
        raise ConfigError(f"{path}: {detail}") from error
    if card.name != path.parent.name:
        raise ConfigError(f"{path}: name is {card.name!r}, but its folder is {path.parent.name!r}: make them equal")
    return card


def load_roles(folder: Path) -> dict[str, RoleCard]:
    """Read all role cards of a folder, by name. Raises ConfigError if it has none."""
    cards = [load_card(path) for path in sorted(folder.glob("*/ROLE.md"))]
    if not cards:
        raise ConfigError(f"{folder} has no <role>/ROLE.md: `swarm init` creates five roles")
    return {card.name: card for card in cards}


def check_models(settings: Settings, roles: Mapping[str, RoleCard]) -> None:
    """Check the models that the settings and the cards choose for roles. Raises ConfigError with the role and the fix.

    A card may come from a stranger: only the settings may choose a provider that is paid by the machine's account.
    """
    if unknown := [name for name in settings.roles if name not in roles]:
        raise ConfigError(f"roles.{unknown[0]} in {CONFIG_FILE}: there is no such role; roles are {', '.join(roles)}")
    used = {settings.model.provider}
    for choice in settings.roles.values():
        used |= {split_provider(name) for name in (choice.model, *(choice.fallback or ())) if name}
    for name, card in roles.items():
        place = f"roles.{name} in {CONFIG_FILE}" if name in settings.roles else f"roles/{name}/ROLE.md"
        place = f"model of role {name} ({place})"
        try:
            settings.model_of(name, card)
        except ConfigError as error:
            raise ConfigError(f"{place}: {error}") from error
        for model in (card.model, *(card.fallback or ())):
            if model and is_paid_by_account(model) and split_provider(model) not in used:
                raise ConfigError(
                    f"{place}: {model} is paid by your account, and only {CONFIG_FILE} may choose it: set "
                    f"roles.{name}.model there"
                )
