"""Run the turn of a leased task, step by step.

Every error becomes an Outcome, except LeaseLost and cancellation.
"""

from __future__ import annotations

from functools import partial

from fireswarm.contracts.foreign.call import refuse_own_end
from fireswarm.contracts.skills.skill import SkillState
from fireswarm.contracts.swarm.outcome import Done
from fireswarm.errors import LeaseLost, SkillFailed
from fireswarm.runs.sinks.documents import Journal
from fireswarm.swarm.board import HeldLease
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.turn.conversation import TurnRefused
from fireswarm.swarm.turn.engines.choose import choose_engine
from fireswarm.swarm.turn.given.deliverable import with_files_of_last_tasks
from fireswarm.swarm.turn.inputs import gather_inputs
from fireswarm.swarm.turn.outcome import describe_error, end_children, outcome_of, outcome_of_error, outcome_of_original
from fireswarm.swarm.turn.outputs import gather_writes
from fireswarm.swarm.turn.state import Turn, TurnEnd


async def open_journal(lease: HeldLease, parts: SwarmParts) -> Journal:
    """Open the journal of a lease's run. Raises StoreError."""
    earlier = await parts.board.read_earlier(lease.task) if lease.task.continues is not None else ()
    return await Journal.open(parts.store, parts.clock, parts.blobs, lease, partial(parts.board.renew, lease), earlier)


async def run_turn(lease: HeldLease, parts: SwarmParts) -> TurnEnd:
    """Work on a leased task until it is done, fails, waits or delegates."""
    task = lease.task
    turn = Turn(lease, parts, await open_journal(lease, parts), task, parts.roles[task.assigned_to])
    try:
        async with refuse_own_end(f"code of the role {task.assigned_to}", SkillFailed):
            if task.duplicate_of is not None:
                return turn.end(await outcome_of_original(turn))
            turn.request = await gather_inputs(turn)  # dependencies, children, envelope, facts
            turn.engine = choose_engine(turn)  # code, model or advice
            turn.request = await turn.conversation.resume(turn.request)  # unchanged for a skill without a conversation
            result = await turn.engine.run(turn)  # journaled; its files and large values are in the blob store
            if result.state is SkillState.COMPLETED and turn.relatives.children and not task.is_question:
                makers = [child for child in turn.relatives.children if not child.is_review]
                artifacts = with_files_of_last_tasks(result.artifacts, makers)
                result = result.model_copy(update={"artifacts": artifacts})
            turn.writes += await turn.conversation.keep(result)
            outcome = outcome_of(turn, result)
            if isinstance(outcome, Done) and task.children:
                await end_children(turn)
            await gather_writes(turn, result, outcome)  # facts, replies, writes of the role, envelopes
            return turn.end(outcome)
    except LeaseLost:
        raise
    except TurnRefused as refused:
        return turn.end(refused.outcome, discard=True)
    except Exception as error:  # the task boundary: every failure becomes an outcome and is journaled
        turn.journal.note("turn_failed", error=describe_error(error))
        return turn.end(outcome_of_error(error), discard=True)
