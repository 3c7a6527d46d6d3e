"""``swarm doctor``: check the installation and report how to fix each problem."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import typer
from rich.text import Text

from firelite.errors import FireliteError
from fireswarm.cli.shared.options import (
    AsJson,
    Project,
    Root,
    StoreUri,
    board_settings,
    console,
    print_json,
    run_async,
    settings_for,
)
from fireswarm.client import Swarm
from fireswarm.contracts.base import count_noun
from fireswarm.contracts.ports import Query
from fireswarm.contracts.swarm.role import RoleCard
from fireswarm.contracts.swarm.task import TaskStatus
from fireswarm.errors import FireswarmError, MissingApiKey
from fireswarm.llm.budget import Meter
from fireswarm.processes.confinement.paths.late_names import set_aside_left
from fireswarm.processes.confinement.programs import find_program
from fireswarm.runs.model_adapters import describe_access
from fireswarm.settings import Settings
from fireswarm.settings.agent import ModelSettings
from fireswarm.settings.extras import install_command
from fireswarm.settings.model_limits import UNKNOWN, limits_of
from fireswarm.settings.packaged import packaged_path
from fireswarm.skills.packs.catalog import Catalog
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import AGENTS, MAILBOX, MEMORY, RUNS, TASKS, task_path

MOST_AGENTS = 50
"""Heartbeats, the newest, among which one of a living agent is looked for."""

MAX_STALLS = 20
"""Number of stalled tasks that are listed; JSON has all."""

EXTRAS = {
    "sklearn": "predict",
    "matplotlib": "report",
    "gcsfs": "gcs",
    "mcp": "mcp",
    "fastapi": "api",
    "tree_sitter": "pipeline",
    "openai": "openai",
    "boto3": "bedrock",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check. ``ok`` is None for a note, which is not a failure."""

    what: str
    ok: bool | None
    detail: str


def doctor(root: Root = Path(), store: StoreUri = None, project: Project = None, as_json: AsJson = False) -> None:
    """Check configuration, store, indexes, roles and skills; exit code 1 if a check fails."""
    findings: list[Finding] = [_python(), *(Finding("late names", None, line) for line in set_aside_left())]
    settings = _try(findings, "settings", lambda: settings_for(root, store, project), lambda _: "read")
    if settings is None:
        with contextlib.suppress(FireswarmError):  # it is in the findings
            settings = board_settings(root, store, project)
    if settings is not None:
        findings += _data(settings)
        findings += _models(settings)
        _check_receivers(findings, settings)
        findings += run_async(lambda: _store(settings, most=sys.maxsize if as_json else MAX_STALLS))
    findings += _extras()
    if as_json:
        print_json([{"what": item.what, "ok": item.ok, "detail": item.detail} for item in findings])
    else:
        for item in findings:
            mark = {True: ("ok  ", "green"), False: ("FAIL", "red"), None: ("note", "yellow")}[item.ok]
            console.print(Text.assemble(mark, f" {item.what:<10} "), end="")
            console.print(item.detail, markup=False, soft_wrap=True)
    if any(item.ok is False for item in findings):
        raise typer.Exit(1)


def _try[T](findings: list[Finding], what: str, call: Callable[[], T], say: Callable[[T], str]) -> T | None:
    try:
        value = call()
    except (FireswarmError, FireliteError) as error:
        findings.append(Finding(what, False, str(error)))
        return None
    findings.append(Finding(what, True, say(value)))
    return value


def _python() -> Finding:
    return Finding("python", sys.version_info >= (3, 12), f"{sys.version.split()[0]} (3.12 or newer is needed)")


def _data(settings: Settings) -> list[Finding]:
    """Check roles, skills and the handoff policy."""
    from fireswarm.swarm.opening.open_parts import load_swarm

    findings: list[Finding] = []
    swarm = _try(
        findings,
        "roles",
        lambda: load_swarm(settings),
        lambda loaded: f"{', '.join(sorted(loaded[0]))}; {len(loaded[1].skills)} skills; handoff policy read",
    )
    if swarm is None:
        return findings
    roles, catalog, policy, pipelines = swarm
    for path, reason in catalog.left_out:
        if not (
            reason.startswith("shadowed") and path.is_relative_to(packaged_path("skills"))
        ):  # the user's skill replaces a packaged one
            findings.append(Finding("skill", None, f"{path} left out: {reason}"))
    findings += [Finding("skill", None, f"{path}: {warning}") for path, warning in catalog.warned]
    findings += [Finding("pipeline", None, f"{path} left out: {reason}") for path, reason in pipelines.left_out]
    for card in roles.values():
        for name in card.skills:
            if name not in catalog.skills and name != "noop":
                findings.append(
                    Finding("skill", False, f"role {card.name} names skill {name}: add skills/{name}/SKILL.md")
                )
        findings += _capabilities(card)
    findings += _confinement(settings, roles, catalog)
    trusting = sorted(name for name, card in roles.items() if card.trusted)
    findings += [Finding("trusted", None, f"code of role {name}'s skills runs unconfined") for name in trusting]
    findings += _plugins()
    for sender, receivers in (*policy.routes.items(), *policy.answers.items()):
        for name in {sender, *receivers} - {"*", "operator"} - set(roles):
            findings.append(Finding("mailbox", None, f"policy.yaml names {name}, which is not a role of this swarm"))
    return findings


def _capabilities(card: RoleCard) -> list[Finding]:
    """Check that the role's capabilities work here, together with those that it offers to plans."""
    from fireswarm.capabilities import registry_for

    own = {use.id for use in card.capabilities}
    uses = (*card.capabilities, *(use for use in card.offers if use.id not in own))
    try:
        registry_for(uses).check(uses)
    except FireswarmError as error:
        return [Finding("role", False, f"role {card.name}: {error}")]
    return []


def _confinement(settings: Settings, roles: Mapping[str, RoleCard], catalog: Catalog) -> list[Finding]:
    """Check that code can be confined here. It is a failure if a role of this swarm has such code."""
    from fireswarm.swarm.opening.confinement import confined_skills, describe, refusal

    if not (reason := refusal(settings.runtime.confinement)):
        told = describe(settings.runtime.confinement)
        return [Finding("confined", True, told)] if told else []
    needed = [f"skill {name}" for name in confined_skills(settings, roles.values(), catalog)]
    offering = [
        card.name for card in roles.values() if "sandbox" in {use.id for use in (*card.capabilities, *card.offers)}
    ]
    needed += [f"the sandbox of role {name}" for name in offering]
    what = f"{', '.join(needed)} cannot run" if needed else "commands of models and code of further skills cannot run"
    return [Finding("confined", False if needed else None, f"{reason}. Until then {what}")]


def _plugins() -> list[Finding]:
    """List capabilities of installed packages and of the swarm's folder that cannot be loaded."""
    from fireswarm.capabilities import registry

    return [Finding("plugin", False, f"{place} left out: {why}") for place, why in registry().left_out]


def _models(settings: Settings) -> list[Finding]:
    """Check the model of the settings, those that roles choose, and their fallbacks."""
    from fireswarm.swarm.opening.open_parts import load_roles
    from fireswarm.swarm.opening.pipeline_files import data_path

    if settings.worker.think == "never":
        return [Finding("model", None, "worker.think is never: roles use no model")]
    chosen = [("", settings.model)]
    with contextlib.suppress(FireswarmError):  # it is in the findings of the roles
        cards = load_roles(data_path(settings, "roles"))
        chosen += [(f"role {name}: ", settings.model_of(name, card)) for name, card in cards.items()]
    models: dict[str, tuple[str, ModelSettings]] = {}
    for user, model in chosen:
        models.setdefault(model.full_name, (user, model))
        for number in range(len(model.fallback)):
            behind = model.behind(number)
            models.setdefault(behind.full_name, (f"{user}fallback ", behind))
    return [_model(settings.model_copy(update={"model": model}), user) for user, model in models.values()]


def _model(settings: Settings, user: str) -> Finding:
    """Check a model's settings, key and price. *user* is the first role that chooses it, or ""."""
    model = settings.model
    if model.provider == "scripted":
        known = bool(model.script)
        text = f"scripted: {model.script}" if known else "scripted, but model.script is not set"
        return Finding("model", known, f"{user}{text}")
    name = f"{user}{model.provider} {model.model_name}"
    try:
        access = describe_access(settings, os.environ)
    except MissingApiKey as error:
        told = f"roles do not use the model {name}" if not user else f"{name} is not used"
        return Finding("model", None, f"{told}: {error}")
    except FireswarmError as error:
        return Finding("model", False, f"{name}: {error}")
    limits = limits_of(model.model_name)
    notes = [f"{name}, {access}"]
    if limits.window == UNKNOWN.window and model.max_context_tokens is None:
        notes.append(f"unknown context window, {limits.window:,} tokens are assumed: set model.max_context_tokens")
    if Meter(settings.budget, model.model_name).price is None:
        notes.append(f"no known price: set budget.prices.{model.model_name}")
    return Finding("model", True, "; ".join(notes))


def _check_receivers(findings: list[Finding], settings: Settings) -> None:
    """Check that each webhook has an address."""
    for name, receiver in settings.notify.items():
        if not receiver.command:
            _try(findings, "notify", receiver.find_address, lambda _, name=name: f"{name}: has an address")


async def _store(settings: Settings, most: int) -> list[Finding]:
    """Check that the store can be reached, its indexes, and tasks that no agent will process."""
    findings: list[Finding] = []
    try:
        async with Swarm.open(settings=settings, create=False) as swarm:
            await swarm.parts.store.get(task_path("doctor"))
            findings.append(Finding("store", True, f"{settings.store.uri}: reachable"))
            findings += await _indexes(swarm)
            findings += await _documents(swarm, most)
            idle = await swarm.schedules.find_idle()
            findings += [Finding("schedules", None, f"{name}: {reason}") for name, reason in idle[:most]]
            findings += await _without_agents(swarm)
            if failed := await swarm.parts.store.count(queries.failed_notices()):
                advice = "see the field error of the documents in agent_notices whose state is failed"
                findings.append(
                    Finding("notify", False, f"{count_noun(failed, 'notice')} could not be delivered: {advice}")
                )
    except (FireswarmError, FireliteError) as error:
        findings.append(Finding("store", False, str(error)))
    return findings


async def _indexes(swarm: Swarm) -> list[Finding]:
    """Run each query shape once to check that its index exists."""
    now = swarm.parts.clock.now()
    probes: list[Query] = [
        queries.claimable("doctor", 1),
        queries.claimable_from("doctor", 5, "8", 1),
        queries.next_due("doctor"),
        queries.due("doctor", now, 1),
        queries.with_lease("doctor"),
        queries.queued_slice("doctor", "4", "8", 1),
        queries.idle_agents("doctor", now),
        queries.known_facts("session_hash", "doctor", 1),
        queries.new_facts("session_hash", "doctor", now, 1),
        queries.new_facts("project", "doctor", now, 1),
        queries.session_files("doctor", "/", "0", 1),
        queries.newest(TASKS, "updated_at", 1, status="queued"),
        queries.newest(RUNS, "started_at", 1, status="started"),
        queries.newest(MAILBOX, "created_at", 1, status="new"),
        queries.newest(MEMORY, "created_at", 1, type="fact"),
        queries.heartbeats(1, role="doctor"),
        queries.page(AGENTS, "created_at", 1, None, session_hash="doctor", status="active"),
    ]
    missing: list[Finding] = []
    for probe in probes:
        try:
            await swarm.parts.store.query(probe)
        except FireswarmError as error:
            missing.append(
                Finding("indexes", False, f"{error} Deploy them with `firebase deploy --only firestore:indexes`.")
            )
    return missing or [Finding("indexes", True, f"{len(probes)} query shapes have their indexes")]


async def _without_agents(swarm: Swarm) -> list[Finding]:
    """Say if tasks wait and no agent lives."""
    now = swarm.parts.clock.now()
    statuses = (TaskStatus.QUEUED, TaskStatus.IN_PROGRESS)
    waiting = sum([await swarm.parts.store.count(queries.with_status(status.value)) for status in statuses])
    if not waiting or any(agent.lives_at(now) for agent in await swarm.parts.heartbeats.latest(MOST_AGENTS)):
        return []
    what = f"{count_noun(waiting, 'task')} {'waits' if waiting == 1 else 'wait'}, and no agent lives"
    return [Finding("agents", None, f"{what}: `swarm up` starts agents, `swarm agents` lists the last ones")]


async def _documents(swarm: Swarm, most: int) -> list[Finding]:
    """List tasks and messages that no agent will process, with what to do, and unreadable documents: *most* of each."""
    stalls = await swarm.stalls()
    findings = [Finding(_kind_of(stall.path), None, f"{stall.path}: {stall.reason}") for stall in stalls[:most]]
    if all(_kind_of(stall.path) != "tasks" for stall in stalls):
        findings.insert(
            0, Finding("tasks", True, "every task that has not ended is readable and has a role that can execute it")
        )
    if len(stalls) > most:
        rest = f"{len(stalls) - most:,} more stalled: `swarm doctor --json` lists all"
        findings.append(Finding("tasks", None, rest))
    return findings + await _unreadable(swarm, {stall.path for stall in stalls}, most)


async def _unreadable(swarm: Swarm, stalled: Collection[str], most: int) -> list[Finding]:
    """List documents that no page and no agent can read, with the reason: *most* of them, without the stalled ones."""
    from fireswarm.swarm.opening.unreadable import MOST_DOCUMENTS, find_unreadable

    faults = await find_unreadable(swarm.parts.store)
    said = [fault for path, fault in faults.items() if path not in stalled]
    if not said:
        told = f"those that were read, up to {MOST_DOCUMENTS} of each kind, are valid"
        return [Finding("documents", True, told)]
    findings = [Finding("documents", None, fault) for fault in said[:most]]
    if len(said) > most:
        rest = f"{len(said) - most:,} more cannot be read: `swarm doctor --json` lists all"
        findings.append(Finding("documents", None, rest))
    return findings


def _kind_of(path: str) -> str:
    return "mail" if path.startswith(f"{MAILBOX}/") else "tasks"


def _extras() -> list[Finding]:
    findings = [
        Finding("extra", None, f"{module} is not installed: {install_command(extra)}")
        for module, extra in EXTRAS.items()
        if find_spec(module) is None and module != "gcsfs"
    ]
    if find_program("git") is None:
        findings.append(Finding("git", None, "git is not installed: the scout reports without file history"))
    return findings
