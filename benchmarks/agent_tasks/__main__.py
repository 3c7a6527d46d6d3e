"""Twelve small tasks for the agent, judged by what it leaves: with recorded answers, or with a model of your own.

python -m benchmarks.agent_tasks                             recorded answers: the loop and its tools, no model
python -m benchmarks.agent_tasks --model claude-sonnet-5-5   a model; its provider's key is in the environment
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

from benchmarks.agent_tasks.chosen_model import TASK_USD, Chosen, choose
from benchmarks.agent_tasks.options import (
    CANNOT_START,
    INTERRUPTED,
    make_folder,
    make_keeper,
    make_parser,
    open_console,
    read_number,
)
from benchmarks.agent_tasks.report import figures, print_table
from benchmarks.agent_tasks.runner import Result, run_all
from benchmarks.agent_tasks.task import TASKS, BenchTask, load_tasks
from benchmarks.common import emit
from fireswarm.errors import FireswarmError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tasks and print their results; returns the exit code.

    With recorded answers, a task that fails is a fault of fireswarm: 1. With a model it is a measurement: 0.
    """
    parser = make_parser("benchmarks.agent_tasks", __doc__, TASKS, TASK_USD)
    parser.add_argument("--jobs", type=read_number, default=1, help="tasks to run side by side; default: 1")
    given = parser.parse_args(arguments)
    try:
        tasks = load_tasks(given.task or (), given.tasks)
        chosen = choose(given.model, given.provider, given.config, given.usd, os.environ)
        folder = make_folder(given.keep)
    except FireswarmError as error:
        sys.stderr.write(f"error: {error}\n")
        return CANNOT_START
    results: list[Result] = []
    console = open_console()
    interrupted = _run(tasks, chosen, folder, given.runs, given.jobs, make_keeper(results, given.json))
    results.sort(key=lambda result: (result.task, result.run))
    planned = len(tasks) * given.runs
    if not given.json:
        print_table(results, chosen, planned, console)
    emit("agent_tasks", **figures(results, chosen, planned))
    if interrupted:
        return INTERRUPTED
    return 1 if chosen.settings is None and not all(result.passed for result in results) else 0


def _run(
    tasks: Sequence[BenchTask],
    chosen: Chosen,
    folder: AbstractContextManager[Any],
    runs: int,
    jobs: int,
    on_result: Callable[[Result], None],
) -> bool:
    """Run the tasks in a folder; returns True after Ctrl+C."""
    with folder as place:
        call = partial(run_all, tasks, chosen, Path(place).resolve(), runs=runs, jobs=jobs, on_result=on_result)
        try:
            anyio.run(call)
        except KeyboardInterrupt:
            return True
    return False


if __name__ == "__main__":
    sys.exit(main())
