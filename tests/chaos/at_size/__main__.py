"""Run chaos at size in a temporary folder and print one JSON line; exit code 1 if anything was lost or repeated."""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
from pathlib import Path
from types import FrameType

import anyio

from tests.chaos.at_size.run import Plan, run
from tests.support.processes import skew_library

MUST_BE_ZERO = (
    "lost",
    "completed_twice",
    "stale_commits",
    "repeated_after_finish",
    "old_results",
    "poison_in_queue",
    "unexpected_ends",
    "left_running",
)

MUST_BE_ZERO_IF_CALM = (*MUST_BE_ZERO, "attempts_lost")


def interrupt(number: int, frame: FrameType | None) -> None:
    """Handle SIGTERM like Ctrl-C, so that everything that was started is ended."""
    signal.raise_signal(signal.SIGINT)


def main() -> int:
    """Parse the options, run, and print the result."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.at_size", description=__doc__)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--poison", type=int, default=200, help="unreadable documents among them")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--replicas", type=int, default=2, help="processes of each role")
    parser.add_argument("--kill-every", type=float, default=2.0, help="seconds between two kills")
    parser.add_argument("--calm", action="store_true", help="end and stop no single process")
    parser.add_argument("--commit-faults", type=float, default=0.01, help="share of commits that fail")
    parser.add_argument("--suspend-every", type=float, default=40.0, help="seconds between two suspends of everything")
    parser.add_argument("--limit", type=float, default=3_600.0, help="seconds after which the run is judged as it is")
    parser.add_argument("--keep", action="store_true", help="keep the folder with the logs and the data")
    given = parser.parse_args()
    print(f"seed {given.seed}", file=sys.stderr)
    if skew_library() is None:
        print("no clock is shifted: install the Debian package faketime", file=sys.stderr)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts background jobs with SIGINT ignored
    signal.signal(signal.SIGTERM, interrupt)
    plan = Plan(
        tasks=given.tasks,
        seed=given.seed,
        poison=given.poison,
        replicas=given.replicas,
        kill_every_seconds=given.kill_every,
        limit_seconds=given.limit,
        calm=given.calm,
        suspend_every_seconds=given.suspend_every,
        commit_faults=given.commit_faults,
        host=os.environ.get("FIRESTORE_EMULATOR_HOST"),
    )
    with tempfile.TemporaryDirectory(delete=not given.keep) as folder:
        found = anyio.run(run, plan, Path(folder))
        if given.keep:
            print(f"logs and data are in {folder}", file=sys.stderr)
    print(json.dumps(found))
    return int(any(found[name] for name in (MUST_BE_ZERO_IF_CALM if given.calm else MUST_BE_ZERO)))


if __name__ == "__main__":
    sys.exit(main())
