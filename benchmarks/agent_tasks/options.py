"""What the benchmarks of tasks share: their options, the folder of the runs, and what is told of a run."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, get_args

from rich.console import Console

from benchmarks.agent_tasks.runner import Result
from fireswarm.errors import InvalidInput
from fireswarm.settings.providers import ProviderName

CANNOT_START, INTERRUPTED = 2, 130


def make_parser(program: str, description: str | None, tasks: Path, usd: float) -> argparse.ArgumentParser:
    """Return the parser of a benchmark, with the options that all have."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {program}", description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [name for name in get_args(ProviderName) if name != "scripted"]
    parser.add_argument("--model", help="model to measure; without it, recorded answers are used")
    parser.add_argument("--provider", choices=names, help="default: found by the model's name")
    parser.add_argument("--config", type=Path, help="agent.yaml with an address, prices, options of the provider")
    parser.add_argument("--task", action="append", help="run only this task; repeatable")
    parser.add_argument(
        "--tasks", type=Path, default=tasks, help="folder of the tasks; default: those beside this file"
    )
    parser.add_argument("--runs", type=read_number, default=1, help="runs of each task; default: 1")
    parser.add_argument("--usd", type=read_money, default=usd, help=f"limit of each run; default: {usd}")
    parser.add_argument("--keep", type=Path, help="empty folder to keep projects and event logs in")
    parser.add_argument("--json", action="store_true", help="print only the line of JSON")
    return parser


def read_number(text: str) -> int:
    """Read a positive number. Raises ValueError."""
    if (number := int(text)) < 1:
        raise ValueError
    return number


def read_money(text: str) -> float:
    """Read an amount in USD. Raises ValueError."""
    if not 0 < (number := float(text)) < 1_000:
        raise ValueError
    return number


def make_folder(keep: Path | None) -> AbstractContextManager[Any]:
    """Return the folder of the runs: an empty one that is kept, or one that is removed. Raises InvalidInput."""
    if keep is None:
        return tempfile.TemporaryDirectory(prefix="fireswarm-tasks-", ignore_cleanup_errors=True)
    try:
        keep.mkdir(parents=True, exist_ok=True)
        empty = not any(keep.iterdir())
    except OSError as error:
        raise InvalidInput(f"--keep {keep}: {error.strerror}") from error
    if not empty:
        raise InvalidInput(f"--keep {keep}: the folder is not empty, name a new one")
    return nullcontext(keep)


def make_keeper(results: list[Result], as_json: bool) -> Callable[[Result], None]:
    """Return what keeps a result, and tells on standard error that it came."""

    def keep(result: Result) -> None:
        results.append(result)
        if not as_json:
            way = "" if result.way == "agent" else f" by the {result.way}"
            ended = "passed" if result.passed else "failed"
            sys.stderr.write(f"{result.task}{way}: {ended} in {result.seconds:.1f} s\n")
            sys.stderr.flush()

    return keep


def open_console() -> Console:
    """Return the console of the table, wide enough for it if the output is a file."""
    return Console(file=sys.stdout, width=None if sys.stdout.isatty() else 160)
