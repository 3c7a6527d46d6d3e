"""Commands that show records of the swarm: runs, agents, mail, memory, cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from fireswarm.cli.shared.options import (
    AsJson,
    Limit,
    Project,
    Root,
    Session,
    StoreUri,
    ago,
    board_settings,
    console,
    one_of,
    print_json,
    run_async,
    style_status,
    suggest_role,
    usage_line,
)
from fireswarm.cli.shared.tables import cell, table
from fireswarm.cli.swarm.cost import draw
from fireswarm.client import Swarm
from fireswarm.contracts.limits import shown_id
from fireswarm.contracts.skills.skill import Fact
from fireswarm.contracts.swarm.envelope import MailStatus
from fireswarm.contracts.swarm.run import RunStatus
from fireswarm.contracts.swarm.status import QueueHints, see_agents
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import MAILBOX, MEMORY, RUNS
from fireswarm.storage.documents.read import parse_readable, parse_run_snapshot
from fireswarm.storage.memory.fact_documents import is_wrong, read_value, short_id, value_text
from fireswarm.swarm.records.spending import FREE_PER_DAY, price_operations, read_spending, sum_operations

MEMORY_TYPES = ("fact", "session_summary", "agent_status")


def runs(
    role: Annotated[str | None, typer.Option("--role", help="Filter by role.")] = None,
    status: Annotated[
        str | None, typer.Option("--status", help="Filter by status: started, progress, completed, error or timeout.")
    ] = None,
    session: Session = None,
    limit: Limit = 30,
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """List the latest runs."""
    status = one_of(status, "--status", RunStatus)

    async def main() -> None:
        async with Swarm.open(settings=board_settings(root, store, project), create=False) as swarm:
            query = queries.newest(RUNS, "started_at", limit, role=role, status=status, session_hash=session)
            found = parse_readable(await swarm.parts.store.query(query), parse_run_snapshot)
            runs = await swarm.parts.run_ends.complete(found)
            if not runs:
                suggest_role(role, swarm.parts.roles)
        if as_json:
            print_json(runs)
            return
        rows = [
            (
                f"{shown_id(run.task_id)}.{run.epoch}",
                run.role,
                style_status(run.status.value),
                ago(run.started_at),
                f"{(run.ended_at - run.started_at).total_seconds():.1f} s" if run.ended_at else "-",
                run.agent_id.rpartition("-")[2],
                cell(run.summary, 80),
            )
            for run in runs
        ]
        columns = ["run", "role", "status", "started", "took", "agent", "summary"]
        table("runs", columns, rows, none="no runs yet: `swarm up` starts agents")

    run_async(main)


WIDE_COLUMNS = 110
NO_AGENTS = "no agents: `swarm up` starts them"


def describe_queue(hints: QueueHints) -> str:
    """Return the number of queued tasks and the age of the oldest."""
    return f"{hints.queued:,}, {hints.oldest_seconds:.0f} s" if hints.queued else "0"


def agents(
    everyone: Annotated[bool, typer.Option("--all", help="Also agents that ended more than an hour ago.")] = False,
    limit: Limit = 50,
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """List agents by their latest heartbeat."""

    async def main() -> None:
        async with Swarm.open(settings=board_settings(root, store, project), create=False) as swarm:
            heartbeats = await swarm.parts.heartbeats.latest(limit)
            orders = [] if as_json else await swarm.orders.read()
        if as_json:
            print_json(heartbeats)
            return
        now = datetime.now(UTC)
        recent = [item for item in heartbeats if item.lives_at(now) or now - item.created_at < timedelta(hours=1)]
        shown = see_agents(heartbeats if everyone else recent, now)
        wide = console.width >= WIDE_COLUMNS
        rows = [
            (
                status.agent_id,
                style_status(seen.state),
                ago(status.created_at),
                f"{status.queue_hints.running}/{status.queue_hints.capacity}",
                describe_queue(status.queue_hints),
                *((f"{status.cpu:.0f} %", f"{status.mem / 1e6:.0f} MB") if wide else ()),
                *(("/".join(f"{status.usage.get(kind, 0):,}" for kind in FREE_PER_DAY),) if wide else ()),
            )
            for seen in shown
            for status in [seen.status]
        ]
        more = ["cpu", "memory", "reads/writes/deletes"] if wide else []
        table("agents", ["agent", "state", "beat", "tasks", "queue", *more], rows, none=NO_AGENTS)
        if len(shown) < len(heartbeats):
            console.print(f"{len(heartbeats) - len(shown)} agents ended more than an hour ago: --all shows them")
        told = [f"{seen.status.agent_id} ended: {seen.end}" for seen in shown if seen.end]
        told += [f"{order.subject or f'the role {order.role}'} is {order.describe()}" for order in orders]
        at_fault = (status for status in heartbeats if status.queue_hints.set_aside or status.queue_hints.faults)
        for line in (*told, *(f"{status.agent_id}: {status.message}" for status in at_fault)):
            console.print(line, style="yellow", markup=False, soft_wrap=True)

    run_async(main)


def mail(
    to: Annotated[str | None, typer.Option("--to", help="Filter by receiving role or agent.")] = None,
    status: Annotated[str | None, typer.Option("--status", help="Filter by status: new, claimed or read.")] = None,
    session: Session = None,
    limit: Limit = 30,
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """List the latest handoff envelopes and messages."""
    status = one_of(status, "--status", MailStatus)

    async def main() -> None:
        async with Swarm.open(settings=board_settings(root, store, project), create=False) as swarm:
            query = queries.newest(MAILBOX, "created_at", limit, to_agent_id=to, status=status, session_hash=session)
            messages = await swarm.parts.mailbox.read(query)
        if as_json:
            print_json(messages)
            return
        rows = [
            (
                shown_id(message.message_id),
                message.from_agent_id,
                message.to_agent_id,
                style_status(message.status.value),
                str(message.payload.trace.step),
                f"{len(message.payload.artifacts)}/{len(message.payload.signals)}",
                ago(message.created_at),
                cell(message.outcome or message.payload.notes, 70),
            )
            for message in messages
        ]
        columns = ["message", "from", "to", "status", "hop", "artifacts/signals", "sent", "notes"]
        table("mail", columns, rows, none="no messages yet")

    run_async(main)


memory_app = typer.Typer(invoke_without_command=True)
NO_FACTS = "no memory documents yet"


@memory_app.callback()
def memory(
    context: typer.Context,
    kind: Annotated[
        str | None, typer.Option("--type", help="Filter by type: fact, session_summary or agent_status.")
    ] = "fact",
    bucket: Annotated[str | None, typer.Option("--bucket", help="Filter by bucket.")] = None,
    session: Session = None,
    limit: Limit = 30,
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """List facts, summaries and heartbeats; with a subcommand, search facts or mark one as wrong."""
    if context.invoked_subcommand is not None:
        return
    kind = one_of(kind, "--type", MEMORY_TYPES)

    async def main() -> None:
        async with Swarm.open(settings=board_settings(root, store, project), create=False) as swarm:
            query = queries.newest(MEMORY, "created_at", limit, type=kind, bucket=bucket, session_hash=session)
            entries = [{"id": item.id, **(item.data or {})} for item in await swarm.parts.store.query(query)]
        if as_json:
            print_json(entries)
            return
        print_memory(entries)

    run_async(main)


def print_memory(entries: Sequence[Mapping[str, Any]]) -> None:
    """Print memory documents as a table."""
    rows = [
        (
            short_id(str(fact.get("id") or "")),
            f"wrong {fact.get('type')}" if is_wrong(fact) else str(fact.get("type")),
            ago(fact.get("created_at")),
            "/".join(str(name) for name in _names_of(fact)),
            cell(_value_of(fact), 90),
        )
        for fact in entries
    ]
    columns = ["id", "type", "learned", "key", "value"]
    table("memory", columns, rows, none=NO_FACTS, folded=("key",))


@memory_app.command()
def recall(
    query: Annotated[str, typer.Argument(help="Words to look for, in any language.")],
    session: Session = None,
    limit: Limit = 10,
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Search the facts and summaries of a session by words, best first, as agents do."""
    settings = board_settings(root, store, project)

    async def main() -> Sequence[Fact]:
        async with Swarm.open(settings=settings, session=session, create=False) as swarm:
            return await swarm.recall(query, limit=limit)

    _print_facts(run_async(main), as_json, "no fact shares a word with this query")


@memory_app.command()
def history(
    fact: Annotated[str, typer.Argument(help="Id of the fact, or the beginning of it.")],
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Show the values that a fact has had, newest first, each with its source and date."""

    async def main() -> Sequence[Fact]:
        async with Swarm.open(settings=board_settings(root, store, project), create=False) as swarm:
            return await swarm.fact_history(fact)

    _print_facts(run_async(main), as_json, NO_FACTS)


@memory_app.command()
def wrong(
    fact: Annotated[str, typer.Argument(help="Id of the fact, or the beginning of it.")],
    reason: Annotated[str, typer.Option("--reason", help="Why it is wrong, for other people.")] = "",
    undo: Annotated[bool, typer.Option("--undo", help="Remove the mark.")] = False,
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
) -> None:
    """Mark a fact or a summary as wrong: no agent is told it or recalls it again. The document remains."""

    async def main() -> Fact:
        async with Swarm.open(settings=board_settings(root, store, project), create=False) as swarm:
            return await swarm.mark_fact(fact, wrong=not undo, reason=reason)

    marked = run_async(main)
    state = "no longer marked" if undo else "marked"
    console.print(f"{state} as wrong: {short_id(marked.fact_id)} {marked.bucket}/{marked.key}", soft_wrap=True)


@memory_app.command()
def correct(
    fact: Annotated[str, typer.Argument(help="Id of the fact, or the beginning of it.")],
    value: Annotated[str, typer.Argument(help="The new value: a text, or JSON if the old value is not a text.")],
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
) -> None:
    """Replace the value of a fact. The earlier value stays in its history; a mark as wrong is removed."""

    async def main() -> Fact:
        async with Swarm.open(settings=board_settings(root, store, project), create=False) as swarm:
            current = (await swarm.fact_history(fact))[0]
            return await swarm.correct_fact(current.fact_id, read_value(value, current.value))

    _print_facts([run_async(main)], as_json=False, none=NO_FACTS)


@memory_app.command()
def forget(
    fact: Annotated[str, typer.Argument(help="Id of the fact, or the beginning of it.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
) -> None:
    """Delete a fact or a summary with all its earlier values, for good."""

    async def main() -> None:
        async with Swarm.open(settings=board_settings(root, store, project), create=False) as swarm:
            current = (await swarm.fact_history(fact))[0]
            name = f"{current.bucket}/{current.key}"
            if not yes:
                typer.confirm(f"delete {name} with all its values?", abort=True)
            await swarm.forget_fact(current.fact_id)
        console.print(f"deleted {short_id(current.fact_id)} {name}", markup=False, soft_wrap=True)

    run_async(main)


def _print_facts(facts: Sequence[Fact], as_json: bool, none: str) -> None:
    if as_json:
        print_json([fact.model_dump(mode="json") for fact in facts])
        return
    rows = [
        (
            short_id(fact.fact_id),
            f"{fact.bucket}/{fact.key}",
            ago(fact.learned_at),
            cell(fact.source or "a person", 40),
            cell(value_text(fact.value), 90),
        )
        for fact in facts
    ]
    table("memory", ["id", "key", "learned", "source", "value"], rows, none=none, folded=("key",))


def _names_of(fact: Mapping[str, Any]) -> list[Any]:
    """Return bucket and key of a memory document, or role and id of an agent."""
    found = (fact.get("bucket") or fact.get("role"), fact.get("key") or fact.get("agent_id"))
    return [name for name in found if name]


def _value_of(fact: Mapping[str, Any]) -> str:
    """Return the first content of a memory document as text; it may be 0 or False."""
    found = (fact.get(name) for name in ("value", "text", "message"))
    return next((str(value) for value in found if value is not None and value != ""), "")


def cost(
    session: Session = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="Number of newest runs to sum up.")] = 1_000,
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Show the cost of models by objective, role and model, and Firestore operations of the last day's agents."""

    async def main() -> None:
        async with Swarm.open(settings=board_settings(root, store, project), create=False) as swarm:
            spent = await read_spending(swarm.parts.store, limit, session)
            heartbeats = await swarm.parts.heartbeats.latest(1_000)
            own = asdict(swarm.parts.store.usage)
        by_role = sum_operations(heartbeats)
        total = sum(by_role.values(), Counter(dict.fromkeys(FREE_PER_DAY, 0)))
        if as_json:
            firestore = {"by_role": by_role, "total": total, "usd": price_operations(total), "this_command": own}
            print_json({"models": spent.fields(), **firestore})
            return
        draw(spent)
        _draw_firestore(by_role, total)
        console.print(f"this command: {usage_line(own)}", style="dim")

    run_async(main)


def _draw_firestore(by_role: dict[str, Counter[str]], total: Counter[str]) -> None:
    rows = [(role, *(f"{usage[kind]:,}" for kind in FREE_PER_DAY)) for role, usage in sorted(by_role.items())]
    rows.append(("all", *(f"{total[kind]:,}" for kind in FREE_PER_DAY)))
    rows.append(("free each day", *(f"{amount:,}" for amount in FREE_PER_DAY.values())))
    table("Firestore, billed in the last day", ["role", *FREE_PER_DAY], rows, none="no agent yet")
    low, high = price_operations(total)
    console.print(f"at list prices ${low:.4f} to ${high:.4f} by region, before the free quota", soft_wrap=True)
