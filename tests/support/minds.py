"""A mind under test: a few tiny skills, a model (scripted, or a provider's adapter at the local server), a run log."""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from fireswarm.clocks import VirtualClock
from fireswarm.contracts.llm.chat import ChatRequest
from fireswarm.contracts.ports import ChatModel, Store
from fireswarm.contracts.swarm.constraints import Constraints
from fireswarm.contracts.swarm.event import EventRecord, EventType
from fireswarm.llm.budget import Ledger
from fireswarm.llm.providers.scripted import ScriptedModel
from fireswarm.mind import Assignment, Conclusion, think
from fireswarm.runs.assemble import grant_of
from fireswarm.runs.make_mind import make_mind, redactor_for
from fireswarm.runs.model_adapters import make_model
from fireswarm.runs.sinks.files import RunLog, read_events
from fireswarm.settings import AgentSettings, load_agent_settings
from fireswarm.skills.packs.catalog import Catalog, load_catalog
from tests.support.cloud_accounts import AWS_ENVIRONMENT, LOCATION, REGION, service_account_file
from tests.support.providers import FakeProviders, Received, Reply, Script

KEY = "sk-test-0123456789"
ENVIRONMENT = {
    "ANTHROPIC_API_KEY": KEY,
    "GEMINI_API_KEY": KEY,
    "TEST_API_KEY": KEY,
    "PATH": "/usr/bin:/bin",
    "HOME": "/nonexistent",
}
PROVIDERS = ("anthropic", "anthropic-vertex", "anthropic-bedrock", "gemini", "gemini-vertex", "openai")
KEYED = ("anthropic", "gemini")
"""Providers that need nothing but a key."""

CLAUDE = PROVIDERS[:3]
GEMINI = PROVIDERS[3:5]
MODELS = {"anthropic-bedrock": "us.anthropic.claude-sonnet-5-5-20260901-v1:0", "openai": "gpt-oss:20b"}
TASK = "greet Ada by name"
SYSTEM = "You are a test."

GREETER = """---
name: greeter
description: Greets people by name. Use when somebody is to be greeted.
---
# Greeter

Say hello, and nothing else.

## Details

See [the manners](references/manners.md).
"""
FAREWELL = """---
name: farewell
description: Says goodbye to people by name, after they were greeted.
---
# Farewell

Say goodbye.
"""


class LeapingClock(VirtualClock):
    """Time that leaps over every pause at once; for one task at a time. ``pauses`` remembers them, in seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self._now += timedelta(seconds=seconds)


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run left."""

    conclusion: Conclusion
    events: list[EventRecord]
    folder: Path

    @property
    def kinds(self) -> list[str]:
        return [event.event_type.value for event in self.events]

    def of(self, kind: EventType) -> list[dict[str, Any]]:
        return [event.payload for event in self.events if event.event_type is kind]

    @property
    def log(self) -> str:
        return (self.folder / "events.jsonl").read_text(encoding="utf-8")


@dataclass(slots=True)
class Bench:
    """A folder with skills, settings, and a clock: where runs are made."""

    root: Path
    clock: LeapingClock = field(default_factory=LeapingClock)
    settings: AgentSettings = field(default_factory=AgentSettings)
    environment: Mapping[str, str] = field(default_factory=lambda: dict(ENVIRONMENT))
    ledger: Ledger | None = None
    store: Store | None = None
    runs: int = 0
    decision_mode: str = "json"
    """For a provider's adapter; a script says by itself if it calls tools."""

    def __post_init__(self) -> None:
        self.skill("greeter", GREETER, {"references/manners.md": "Be kind.\n"})
        self.skill("farewell", FAREWELL)
        self.cwd.mkdir(exist_ok=True)

    @property
    def skills(self) -> Path:
        return self.root / "skills"

    @property
    def cwd(self) -> Path:
        return self.root / "work"

    def skill(self, name: str, text: str, files: Mapping[str, str] | None = None) -> Path:
        folder = self.skills / name
        for path, content in {"SKILL.md": text, **(files or {})}.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(content, encoding="utf-8")
        return folder

    def catalog(self) -> Catalog:
        return load_catalog([self.skills])

    def set(self, **values: Any) -> Bench:
        """Settings by dotted keys, written with two underscores: ``runtime__max_turns=3``."""
        given = {key.replace("__", "."): value for key, value in values.items()}
        self.settings = load_agent_settings(None, given)
        return self

    async def run(
        self,
        model: ChatModel | Sequence[Any] | Callable[..., Any] | None,
        *,
        words: Callable[[str], None] | None = None,
        **assigned: Any,
    ) -> Ran:
        """One run to its end. *model*: an adapter, or the script of one; None: without a key."""
        if model is not None and not hasattr(model, "complete"):
            model = ScriptedModel(model)  # pyright: ignore[reportArgumentType] - a script
        settings = self.settings
        if model is not None and not isinstance(model, ScriptedModel):
            chosen = settings.model.model_copy(update={"decision_mode": self.decision_mode})
            settings = settings.model_copy(update={"model": chosen})
        mind = make_mind(
            settings,
            self.catalog(),
            self.clock,
            self.root,
            environment=self.environment,
            store=self.store,
            ledger=self.ledger,
            model=model,  # pyright: ignore[reportArgumentType] - an adapter by now
        )
        self.runs += 1
        folder = self.root / "runs" / f"20260101-000000-{self.runs:08x}"
        debug = self.settings.logging.debug_llm_bodies
        redactor = redactor_for(self.settings, self.environment)
        log = RunLog(folder, folder.name, self.clock, redactor, debug=debug, on_words=words or _unread)
        constraints = assigned.get("constraints", Constraints())
        grant = grant_of(self.settings, self.cwd, constraints=constraints)
        given: dict[str, Any] = {"task": TASK, "system": SYSTEM, "grant": grant} | assigned
        try:
            conclusion = await think(mind, Assignment(**given), log)
        finally:
            log.close()
        return Ran(conclusion, list(read_events(folder)), folder)


class Heard:
    """A script of a model without tools that remembers what it was asked."""

    tools = False

    def __init__(self, *answers: Any) -> None:
        self.answers = answers
        self.requests: list[ChatRequest] = []

    def __call__(self, request: ChatRequest) -> Any:
        self.requests.append(request)
        return self.answers[min(len(self.requests), len(self.answers)) - 1]

    @property
    def told(self) -> str:
        """The last thing the model was told."""
        return self.requests[-1].messages[-1].text


@dataclass(slots=True)
class Lab:
    """The local server and the providers' own adapters; making an adapter is slow, so they are kept."""

    served: FakeProviders
    models: dict[str, Any] = field(default_factory=dict)

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, patch: pytest.MonkeyPatch) -> AsyncGenerator[Lab]:
        """For one event loop. *patch* puts the accounts' credentials where the clouds' own tools look for them.

        It must be the one that the test itself patches with, or one that outlives the test: what two patches change
        in turn must be put back in the opposite order.
        """
        with tempfile.TemporaryDirectory() as folder:
            async with FakeProviders(()).serving() as served:
                key_file = service_account_file(Path(folder), served.url)
                for name, value in {**AWS_ENVIRONMENT, "GOOGLE_APPLICATION_CREDENTIALS": str(key_file)}.items():
                    patch.setenv(name, value)
                lab = cls(served)
                yield lab
                for model in lab.models.values():
                    await model.aclose()

    def model(self, provider: str, settings: AgentSettings | None = None, **options: Any) -> Any:
        """An adapter for the provider, at the local server."""
        settings = settings or load_agent_settings(None, {"model.request_timeout_seconds": 20})
        return make_model(at(settings, self.served.url, provider, **options), Path(), ENVIRONMENT)

    async def run(self, bench: Bench, provider: str, script: Script | Sequence[Reply], **assigned: Any) -> Ran:
        """One run with a provider's own SDK against the local server; ``served.calls`` are its requests."""
        return await bench.run(self.adapter(provider, script), **assigned)

    def adapter(self, provider: str, script: Script | Sequence[Reply]) -> Any:
        """The adapter of a provider whose server answers by *script* from now on."""
        self.served.script = script
        self.served.received.clear()
        self.served.refused.clear()
        self.served.release = asyncio.Event()
        if provider not in self.models:
            self.models[provider] = self.model(provider)
        return self.models[provider]

    @contextlib.asynccontextmanager
    async def with_model(self, provider: str, settings: AgentSettings, **options: Any) -> AsyncGenerator[Lab]:
        """An adapter with other settings or options, for a while."""
        async with self.using(provider, self.model(provider, settings, **options)) as lab:
            yield lab

    @contextlib.asynccontextmanager
    async def using(self, provider: str, model: Any) -> AsyncGenerator[Lab]:
        """Another adapter, for a while."""
        try:
            yield Lab(self.served, {**self.models, provider: model})
        finally:
            await model.aclose()


def at(settings: AgentSettings, url: str, provider: str, **options: Any) -> AgentSettings:
    """The settings, with a provider at *url*."""
    fields = settings.model_dump()
    reached: dict[str, Any] = {
        "anthropic": {"base_url": url},
        "anthropic-vertex": {"base_url": f"{url}/v1", "location": LOCATION},
        "anthropic-bedrock": {"base_url": url, "region": REGION},
        "gemini": {"base_url": url},
        "gemini-vertex": {"base_url": url, "location": LOCATION},
        "openai": {"base_url": f"{url}/v1", "api_key_env": "TEST_API_KEY"},
    }
    name = MODELS.get(provider, fields["model"]["name"])
    given = {provider: {**reached[provider], "options": options}}
    fields["model"] |= {"provider": provider, "name": name, "providers": given}
    return AgentSettings.model_validate(fields)


def _unread(_words: str) -> None:
    """Somebody follows a model's words, so that they are streamed."""


def decided(*calls: Mapping[str, Any], text: str = "") -> str:
    """An answer in JSON: these calls, each ``{"name": ..., "input": {...}}``, or the text."""
    return json.dumps({"text": text, "calls": list(calls)})


def command(line: str) -> dict[str, Any]:
    return {"name": "run_command", "input": {"command": line}}


def use(skill: str, why: str = "as told", **given: Any) -> dict[str, Any]:
    return {"name": "use_skill", "input": {"name": skill, "reason": why, "input": given}}


def ask(question: str, name: str = "name") -> dict[str, Any]:
    return {"name": "ask_user", "input": {"question": question, "name": name}}


def asks_for_summary(request: Received) -> bool:
    """True for the request that replaces older messages by a summary."""
    return b"Write a summary of it" in request.raw
