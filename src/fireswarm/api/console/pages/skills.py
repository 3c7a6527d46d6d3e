"""The catalog of skills with what the check finds, which skill a request would get, and what each role may use."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from anyio import to_thread

from fireswarm.api.console.visit import Shown, Visit
from fireswarm.contracts.skills.catalog import SkillCandidate
from fireswarm.contracts.swarm.role import RoleCard
from fireswarm.errors import NotFound
from fireswarm.settings import Settings
from fireswarm.skills.checks.pack import PackFault, check_paths
from fireswarm.skills.packs.catalog import Catalog
from fireswarm.skills.routing.router import MIN_SCORE, Router, choose

CHECK_SECONDS = 60.0
"""How long findings and the index of the catalog are kept, for all pages: they read each file of it."""

MAX_QUERY_CHARS, SHOWN_CANDIDATES = 2_000, 8


@dataclass(frozen=True, slots=True)
class RoleUse:
    """What a role may use: its rules are added to those of the settings."""

    card: RoleCard
    ask: tuple[str, ...]
    deny: tuple[str, ...]
    takes: str = ""


async def show(visit: Visit) -> Shown:
    """Make the page; with a query, rank the skills for it. It asks no model."""
    parts, feed = visit.swarm.parts, visit.console.feed
    query = visit.query.get("query", "").strip()[:MAX_QUERY_CHARS]
    catalog = parts.catalog
    findings = await feed.remember("findings", CHECK_SECONDS, lambda: to_thread.run_sync(_check, catalog))
    candidates: list[SkillCandidate] = []
    if query:
        router = await feed.remember("router", CHECK_SECONDS, lambda: to_thread.run_sync(_index, catalog))
        candidates = await to_thread.run_sync(lambda: router.route(query, top_k=SHOWN_CANDIDATES, min_score=0.0))
    cards = sorted(parts.roles.values(), key=lambda card: card.name)
    values = {
        "skills": sorted(catalog.skills.values(), key=lambda skill: skill.name),
        "findings": findings,
        "left_out": catalog.left_out,
        "query": query,
        "candidates": candidates,
        "enough": MIN_SCORE,
        "uses": await to_thread.run_sync(lambda: [_use(card, parts.settings, query, catalog) for card in cards]),
        "network": parts.settings.runtime.network,
        "confinement": parts.settings.runtime.confinement,
        "default": parts.settings.permissions.default,
        "allow": parts.settings.permissions.allow,
    }
    return Shown("skills.html", values)


def _check(catalog: Catalog) -> dict[str, list[PackFault]]:
    """Return what `swarm skills check` finds in each skill, and what the loader accepted with a warning."""
    findings: dict[str, list[PackFault]] = defaultdict(list)
    for skill in catalog.skills.values():
        findings[skill.name] += check_paths([skill.path]).faults
    return dict(findings)


def _index(catalog: Catalog) -> Router:
    router = Router(catalog)
    _ = router.index  # built here, in a thread
    return router


def _use(card: RoleCard, settings: Settings, query: str, catalog: Catalog) -> RoleUse:
    """Return what a role may use, and which of its skills takes a query if no model works for the role."""
    rules = settings.permissions
    ask, deny = (*rules.ask, *card.permissions.ask), (*rules.deny, *card.permissions.deny)
    takes = ""
    if query and card.skills:
        try:
            takes = choose(query, None, card.skills, catalog).name
        except NotFound as missing:
            takes = str(missing)
    return RoleUse(card, tuple(map(str, ask)), tuple(map(str, deny)), takes)
