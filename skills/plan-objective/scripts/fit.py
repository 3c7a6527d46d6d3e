"""Fit of an objective to the templates: the share of its words that a template can act on."""

from __future__ import annotations

from fireswarm import Fit, measure_fit

from .target import Target
from .templates import Template

ASKING_WEIGHT = 2.0
"""Minimum weight of a template's keyword that names the wanted result. A fit needs such a keyword, or a phrase."""


def measure(objective: str, templates: list[Template], target: Target | None) -> Fit:
    """Compare the words of *objective* with the words of the templates and of the target."""
    weights = [item for template in templates for item in template.match.keywords.items()]
    return measure_fit(
        objective,
        [word for word, weight in weights if weight >= ASKING_WEIGHT],
        [*(word for word, _ in weights), *(text for each in templates for text in (each.description, *each.examples))],
        phrases=[phrase for template in templates for phrase in template.match.phrases],
        target=target.path if target else None,
        table=target.csv if target else None,
    )
