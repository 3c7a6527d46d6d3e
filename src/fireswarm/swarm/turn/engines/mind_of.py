"""The mind of one turn: the swarm's, with the budgets of the turn's task."""

from __future__ import annotations

from dataclasses import replace

from fireswarm.llm.spend import StoreLedger
from fireswarm.mind import Mind
from fireswarm.swarm.records.budgets import TaskLedger
from fireswarm.swarm.turn.state import Turn


def mind_of(turn: Turn, mind: Mind) -> Mind:
    """Return *mind* with a ledger that counts for the session of the turn's task, and knows the raised budgets."""
    client, swarm, task = mind.client, turn.swarm, turn.task
    if client is None or client.ledger is None:
        return mind
    ledger = client.ledger
    if isinstance(ledger, StoreLedger):
        ledger = ledger.of_session(task.session_hash)
    journal = turn.journal
    own = TaskLedger(ledger, swarm.store, swarm.clock, task, journal.run_id, journal.usage)
    return replace(mind, client=replace(client, ledger=own))
