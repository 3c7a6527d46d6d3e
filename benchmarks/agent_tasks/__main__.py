"""Twelve small tasks for the agent, judged by what it leaves: with recorded answers, or with a model of your own.

python -m benchmarks.agent_tasks                             recorded answers: the loop and its tools, no model
python -m benchmarks.agent_tasks --model claude-sonnet-5-5   a model; its provider's key is in the environment
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import get_args

import anyio
from rich.console import Console

from benchmarks.agent_tasks.chosen_model import TASK_USD, Chosen, choose
from benchmarks.agent_tasks.report import figures, print_table
from benchmarks.agent_tasks.runner import Result, run_all
from benchmarks.agent_tasks.task import TASKS, BenchTask, load_tasks
from benchmarks.common import emit
from fireswarm.errors import FireswarmError, InvalidInput
from fireswarm.settings.providers import ProviderName

CANNOT_START, INTERRUPTED = 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tasks and print their results; returns the exit code.

    With recorded answers, a task that fails is a fault of fireswarm: 1. With a model it is a measurement: 0.
    """
    given = _parser().parse_args(arguments)
    try:
        tasks = load_tasks(given.task or (), given.tasks)
        chosen = choose(given.model, given.provider, given.config, given.usd, os.environ)
        keep = _empty_folder(given.keep) if given.keep is not None else None
    except FireswarmError as error:
        sys.stderr.write(f"error: {error}\n")
        return CANNOT_START
    results: list[Result] = []
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else 160)
    interrupted = _run(tasks, chosen, keep, given.runs, given.jobs, _keeper(results, given.json))
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
    keep: Path | None,
    runs: int,
    jobs: int,
    on_result: Callable[[Result], None],
) -> bool:
    """Run the tasks in *keep* or in a folder that is removed; returns True after Ctrl+C."""
    with nullcontext(keep) if keep is not None else _removed_folder() as folder:
        call = partial(run_all, tasks, chosen, Path(folder).resolve(), runs=runs, jobs=jobs, on_result=on_result)
        try:
            anyio.run(call)
        except KeyboardInterrupt:
            return True
    return False


def _removed_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="fireswarm-tasks-", ignore_cleanup_errors=True)


def _keeper(results: list[Result], as_json: bool) -> Callable[[Result], None]:
    """Return what keeps a result, and tells on standard error that it came."""

    def keep(result: Result) -> None:
        results.append(result)
        if not as_json:
            sys.stderr.write(f"{result.task}: {'passed' if result.passed else 'failed'} in {result.seconds:.1f} s\n")
            sys.stderr.flush()

    return keep


def _empty_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        empty = not any(folder.iterdir())
    except OSError as error:
        raise InvalidInput(f"--keep {folder}: {error.strerror}") from error
    if not empty:
        raise InvalidInput(f"--keep {folder}: the folder is not empty, name a new one")
    return folder


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.agent_tasks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = [name for name in get_args(ProviderName) if name != "scripted"]
    parser.add_argument("--model", help="model to measure; without it, recorded answers are used")
    parser.add_argument("--provider", choices=names, help="default: found by the model's name")
    parser.add_argument("--config", type=Path, help="agent.yaml with an address, prices, options of the provider")
    parser.add_argument("--task", action="append", help="run only this task; repeatable")
    parser.add_argument(
        "--tasks", type=Path, default=TASKS, help="folder of the tasks; default: those beside this file"
    )
    parser.add_argument("--runs", type=_positive, default=1, help="runs of each task; default: 1")
    parser.add_argument("--jobs", type=_positive, default=1, help="tasks to run side by side; default: 1")
    parser.add_argument("--usd", type=_money, default=TASK_USD, help=f"limit of each run; default: {TASK_USD}")
    parser.add_argument("--keep", type=Path, help="empty folder to keep projects and event logs in")
    parser.add_argument("--json", action="store_true", help="print only the line of JSON")
    return parser


def _positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise ValueError
    return number


def _money(text: str) -> float:
    if not 0 < (number := float(text)) < 1_000:
        raise ValueError
    return number


if __name__ == "__main__":
    sys.exit(main())
