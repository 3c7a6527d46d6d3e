"""Eight objectives for one agent and for the swarm, judged by their outcome, with what each way costs.

python -m benchmarks.team_tasks                             recorded answers from a local server, 2 s a call
python -m benchmarks.team_tasks --model claude-sonnet-5-5   a model; its provider's key is in the environment
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from benchmarks.agent_tasks.chosen_model import Chosen, choose
from benchmarks.agent_tasks.options import (
    CANNOT_START,
    INTERRUPTED,
    make_folder,
    make_keeper,
    make_parser,
    open_console,
)
from benchmarks.agent_tasks.runner import Result
from benchmarks.common import emit
from benchmarks.team_tasks.report import figures, print_table, rows_of
from benchmarks.team_tasks.runner import WAYS, Plan, run_both
from benchmarks.team_tasks.task import TASKS, load_team_tasks
from fireswarm.errors import FireswarmError

OBJECTIVE_USD = 2.0
DELAY_SECONDS = 2.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Do the objectives both ways and print the results; returns the exit code.

    With recorded answers, an objective that fails is a fault of fireswarm: 1. With a model it is a measurement: 0.
    """
    parser = make_parser("benchmarks.team_tasks", __doc__, TASKS, OBJECTIVE_USD)
    parser.add_argument("--way", choices=list(WAYS), action="append", help="only this way; default: both")
    parser.add_argument("--delay", type=float, default=DELAY_SECONDS, help="seconds of a recorded answer; default: 2")
    given = parser.parse_args(arguments)
    try:
        tasks = load_team_tasks(given.task or (), given.tasks)
        chosen = choose(given.model, given.provider, given.config, given.usd, os.environ)
        folder = make_folder(given.keep)
    except FireswarmError as error:
        sys.stderr.write(f"error: {error}\n")
        return CANNOT_START
    results: list[Result] = []
    console = open_console()
    plan = Plan(tasks, given.way or tuple(WAYS), given.runs, given.delay)
    interrupted = _run(plan, chosen, folder, make_keeper(results, given.json))
    rows = rows_of(tasks, results)
    if not given.json:
        print_table(rows, chosen, given.delay, console)
    emit("team_tasks", **figures(rows, chosen, given.delay))
    if interrupted:
        return INTERRUPTED
    return 1 if chosen.settings is None and not all(result.passed for result in results) else 0


def _run(plan: Plan, chosen: Chosen, folder: AbstractContextManager[Any], on_result: Callable[[Result], None]) -> bool:
    """Do the objectives in a folder; returns True after Ctrl+C."""
    with folder as place:
        try:
            anyio.run(partial(run_both, plan, chosen, Path(place).resolve(), on_result))
        except KeyboardInterrupt:
            return True
    return False


if __name__ == "__main__":
    sys.exit(main())
