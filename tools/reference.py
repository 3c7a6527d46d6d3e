"""Generate the parts of the documents that come from the code. A block begins with ``<!-- generated: NAME -->``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import commands
import events
import fields
import housemap

from fireswarm.api.application import make_application
from fireswarm.api.session import ApiSession
from fireswarm.client import Swarm
from fireswarm.contracts.swarm.event import EventType
from fireswarm.mind.states import TRANSITIONS
from fireswarm.redaction import Redactor
from fireswarm.settings import ENVIRONMENT, AgentSettings, Settings
from fireswarm.settings.model_limits import MODEL_LIMITS, UNKNOWN
from fireswarm.settings.providers import DEFAULTS
from fireswarm.settings.sample import Key, keys
from fireswarm.settings.untrusted import find_class

DOCS = Path(__file__).resolve().parents[1] / "docs"
BLOCK = re.compile(r"(<!-- generated: ([\w.-]+) -->\n).*?(\n<!-- end -->)", re.DOTALL)


def documents() -> Iterator[tuple[Path, str]]:
    """Yield every page with a generated block, and its text with current blocks."""
    for path in sorted(DOCS.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        if BLOCK.search(text):
            yield path, BLOCK.sub(lambda found: f"{found[1]}{BLOCKS[found[2]]()}{found[3]}", text)


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    titles = list(head)
    lines = [titles, ["---"] * len(titles), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _keys(found: Iterable[Key]) -> str:
    return _table(
        ("key", "default", "type", "allowed", "meaning", "without trust"),
        (
            (
                f"`{key.name}`",
                f"`{key.default}`",
                key.kind,
                f"`{key.allowed}`" if key.allowed else "any",
                key.meaning,
                find_class(key.name)[0],
            )
            for key in found
        ),
    )


def _agent_keys() -> str:
    return _keys(keys(AgentSettings))


def _swarm_keys() -> str:
    shared = {key.name for key in keys(AgentSettings)}
    return _keys(key for key in keys(Settings) if key.name not in shared)


def _environment() -> str:
    defaults = {key.name: key.default for key in keys(Settings)}
    rows = (
        (f"`{name}`", f"`{'.'.join(parts)}`", f"`{defaults['.'.join(parts)]}`") for name, parts in ENVIRONMENT.items()
    )
    return _table(("variable", "sets", "default"), rows)


def _prices() -> str:
    names = ("input", "output", "cached", "cache_write")
    rows = (
        (
            f"`{model}`",
            f"{limits.window:,}",
            f"{limits.max_answer:,}",
            *(f"{limits.price[name]:g}" if limits.price and name in limits.price else "-" for name in names),
        )
        for model, limits in [*MODEL_LIMITS.items(), ("others", UNKNOWN)]
    )
    return _table(("model", "window", "longest answer", *names), rows)


def _models() -> str:
    models = {name: provider.default_model for name, provider in DEFAULTS.items()}
    return _table(("provider", "model"), ((f"`{name}`", f"`{model}`") for name, model in models.items() if model))


def _transitions() -> str:
    return _table(
        ("from", "to", "when"), ((f"`{move.source}`", f"`{move.target}`", move.condition) for move in TRANSITIONS)
    )


def _events() -> str:
    rows = (
        (f"`{kind}`", events.EVENTS[kind].when, ", ".join(f"`{key}`" for key in events.EVENTS[kind].payload))
        for kind in EventType
    )
    return _table(("event", "when", "payload"), rows)


def openapi() -> dict[str, Any]:
    """Return the HTTP API's OpenAPI document. It needs no swarm."""
    return make_application(ApiSession(cast("Swarm", None), Redactor())).openapi()


def _endpoints() -> str:
    rows = (
        (f"`{method.upper()} {path}`", operation["description"].split("\n")[0])
        for path, operations in openapi()["paths"].items()
        for method, operation in operations.items()
    )
    return _table(("endpoint", "what it does"), rows)


BLOCKS: dict[str, Callable[[], str]] = {
    "agent.yaml": _agent_keys,
    "swarm.yaml": _swarm_keys,
    "environment": _environment,
    "prices": _prices,
    "models": _models,
    "transitions": _transitions,
    "events": _events,
    "commands": commands.reference,
    "endpoints": _endpoints,
    "rooms": housemap.room_table,
    "files": housemap.file_tables,
    "fields.parts": fields.part_tables,
    **{f"fields.{model.__name__}": partial(fields.table, model) for model in fields.DOCUMENTS},
}
