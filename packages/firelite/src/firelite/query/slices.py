"""Long work in slices: a generator yields where it may pause, and the event loop serves other requests in between."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import closing
from time import perf_counter

# An in-process get waits for about one slice, one over gRPC for a few.
SLICE_SECONDS = 0.002
# Documents between two points where work may pause: about a third of a millisecond.
STEP_DOCUMENTS = 32
# Work on fewer documents is done without pauses: it takes a few milliseconds, and needs no snapshot to be consistent.
SMALL_DOCUMENTS = 1000

type Steps[T] = Generator[None, None, T]


async def pause() -> None:
    """Let the event loop run its ready callbacks."""
    await asyncio.sleep(0)


async def in_slices[T](steps: Steps[T]) -> T:
    """Run the generator, return its result, and let the event loop run after each slice of time."""
    with closing(steps):
        end = perf_counter() + SLICE_SECONDS
        while True:
            try:
                next(steps)
            except StopIteration as finished:
                return finished.value
            if perf_counter() >= end:
                await pause()
                end = perf_counter() + SLICE_SECONDS


def at_once[T](steps: Steps[T]) -> T:
    """Run the generator without a pause and return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            return finished.value
