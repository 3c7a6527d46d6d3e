"""Role cards: ``roles/<name>/ROLE.md``, with frontmatter for the engine and a prompt for the model."""

from __future__ import annotations

from pathlib import Path

import yaml
from pydantic import ValidationError

from fireswarm.contracts.base import explain_validation
from fireswarm.contracts.frontmatter import split_frontmatter
from fireswarm.contracts.swarm.role import RoleCard
from fireswarm.errors import ConfigError


def load_card(path: Path) -> RoleCard:
    """Read one ROLE.md. Raises ConfigError with the file and the key."""
    try:
        fields, body = split_frontmatter(path.read_text(encoding="utf-8"))
        card = RoleCard.model_validate(fields | {"prompt": body})
    except (ValueError, yaml.YAMLError) as error:
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
