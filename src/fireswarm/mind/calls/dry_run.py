"""Describe the first request of a run that calls no model. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from fireswarm.contracts.skills.catalog import SkillCandidate
from fireswarm.llm.prompt import Transcript
from fireswarm.llm.tokens import prompt_limit
from fireswarm.settings import AgentSettings
from fireswarm.settings.agent import BudgetSettings
from fireswarm.settings.model_limits import price_of

HEADING = "A dry run: no model was called and no tool was run. The first request would have:"


def describe_first_request(settings: AgentSettings, candidates: Sequence[SkillCandidate], talk: Transcript) -> str:
    """Return the model, the routing candidates with reasons, the tools, the budget and the size, as Markdown."""
    model, price = settings.model, price_of(settings.model.model_name, settings.budget.prices)
    tokens, limit = talk.tokens, prompt_limit(model)
    cost = (
        f", about {tokens * price.get('input', 0.0) / 1_000_000:.4f} USD" if price is not None else ", no price known"
    )
    budget = talk.budget(model.context_tokens, model.response_headroom_tokens)
    parts = ", ".join(f"{name} {size:,}" for name, size in budget.components.items() if size)
    skills = [f"  - {each.skill_name} ({each.score:g}): {each.reason}" for each in candidates]
    return "\n".join(
        [
            HEADING,
            "",
            f"- model: {model.provider} {model.model_name}",
            f"- routing candidates: {len(candidates) or 'none'}",
            *skills,
            f"- tools: {', '.join(tool.name for tool in talk.tools)}",
            f"- budget: {_describe_budget(settings.budget)}; at most {settings.runtime.max_turns} answers",
            f"- size: about {tokens:,} tokens of at most {limit:,} ({parts}){cost}",
        ]
    )


def _describe_budget(budget: BudgetSettings) -> str:
    limits: list[str] = []
    for scope in ("task", "session", "day"):
        tokens, usd = getattr(budget, f"{scope}_tokens"), getattr(budget, f"{scope}_usd")
        limits += [f"{tokens:,} tokens a {scope}"] if tokens is not None else []
        limits += [f"{usd:g} USD a {scope}"] if usd is not None else []
    return ", ".join(limits) or "no limit of tokens or USD"
