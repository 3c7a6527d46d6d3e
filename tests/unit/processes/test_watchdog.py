"""A worker's event loop that stands still is reported with the stacks of all threads, once per stall."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import logging, os, re, sys, threading, time
import anyio
from fireswarm.processes.watchdog import watch_loop

def block_here(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass

def block_in_c():
    sys.setswitchinterval(0.2)  # on a busy machine too, the report has the lock until it is done
    re.match("(a|aa)+$", "a" * 34 + "!")
    has_ended.set()

has_ended, write = threading.Event(), os.write

def write_late(*given):
    has_ended.wait(20)
    return write(*given)

async def main():
    logging.basicConfig(level=logging.INFO)
    async with watch_loop({limit}):
        {work}
        await anyio.sleep(min({limit}, 0.4))

with_secret = "hunter22"
anyio.run(main)
"""


def report(work: str, limit: float = 0.4) -> str:
    program = PROGRAM.format(work=work, limit=limit)
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    ).stderr


def test_stalls_are_reported_once_each_with_stacks_and_duration() -> None:
    told = report(
        "await anyio.sleep(0.01); block_here(1.0); await anyio.sleep(0.01); await anyio.sleep(0.3); block_here(1.1)"
    )
    assert told.count("Timeout (") == 2
    assert told.count("block_here") == 2
    assert told.count("in main") >= 2
    assert told.count("the event loop was blocked for") == 2
    assert "hunter22" not in told


def test_call_that_holds_the_interpreter_lock_is_reported_with_its_stack() -> None:
    told = report("await anyio.sleep(0.01); block_in_c()", 0.1)
    assert "block_in_c" in told
    assert told.index("block_in_c") < told.index("the event loop was blocked for")


def test_call_is_in_the_stacks_although_the_loop_goes_on_while_the_report_is_written() -> None:
    told = report("os.write = write_late; await anyio.sleep(0.01); block_in_c()", 0.1)
    assert "block_in_c" in told


@pytest.mark.parametrize("work", ["pass", "await anyio.sleep(0.5)", "await anyio.to_thread.run_sync(block_here, 0.2)"])
def test_loop_that_runs_is_not_reported(work: str) -> None:
    assert report(work, 20.0 if "thread" in work else 2.0) == ""


CHURN = """
import sys, time
import anyio
from fireswarm.processes.watchdog import watch_loop

def churn(depth):
    return churn(depth - 1) if depth else [each for each in map(lambda number: number + 1, range(3))]

async def main():
    sys.setswitchinterval(0.0005)  # the report waits for its turn
    async with watch_loop(0.002):
        for _ in range(300):
            end = time.monotonic() + 0.01
            while time.monotonic() < end:
                churn(30)
                exec(compile("def made():\\n    return 1\\nmade()", "x", "exec"), {})
            await anyio.sleep(0.001)

anyio.run(main)
print("went on", file=sys.stdout)
"""


def test_report_does_not_crash_a_process_whose_code_runs_on() -> None:
    done = subprocess.run([sys.executable, "-c", CHURN], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "went on\n")
    assert done.stderr.count("Timeout (") > 30
