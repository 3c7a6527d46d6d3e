"""The command lines: ``swarm`` for the fleet, ``agent`` for a single agent.

Modules are imported only when a command is called: a skill's process loads this module and must start fast.
"""

import contextlib
from collections.abc import Callable, Generator


def swarm_command() -> None:
    """Entry point of ``swarm``."""
    with _loading():
        from fireswarm.cli.swarm.main import main

    _call(main)


def agent_command() -> None:
    """Entry point of ``agent``."""
    with _loading():
        from fireswarm.cli.agent.main import main

    _call(main)


@contextlib.contextmanager
def _loading() -> Generator[None]:
    """Imports inside this block are fast, have all standard streams, and end on Ctrl+C without a traceback."""
    from fireswarm.processes.startup import INTERRUPTED, replace_closed_streams, without_collector

    replace_closed_streams()
    try:
        with without_collector():
            yield
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None


def _call(main: Callable[[], None]) -> None:
    from fireswarm.processes.startup import freeze

    freeze()
    try:
        main()
    finally:
        freeze()
