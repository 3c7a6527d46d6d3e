"""The command lines: ``swarm`` for the fleet, ``agent`` for a single agent.

Nothing is imported until a command is called: a skill's process loads this module and must start fast.
"""

from collections.abc import Callable

INTERRUPTED = 130
"""Exit code after Ctrl+C."""


def swarm_command() -> None:
    """Entry point of ``swarm``."""
    from fireswarm.processes.startup import replace_closed_streams, without_collector

    replace_closed_streams()
    try:
        with without_collector():
            from fireswarm.cli.swarm.main import main
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None

    _call(main)


def agent_command() -> None:
    """Entry point of ``agent``."""
    from fireswarm.processes.startup import replace_closed_streams, without_collector

    replace_closed_streams()
    try:
        with without_collector():
            from fireswarm.cli.agent.main import main
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None

    _call(main)


def _call(main: Callable[[], None]) -> None:
    from fireswarm.processes.startup import freeze

    freeze()
    try:
        main()
    finally:
        freeze()
