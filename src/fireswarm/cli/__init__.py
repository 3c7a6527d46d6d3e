"""The command lines: ``swarm`` for the fleet, ``agent`` for a single agent.

Modules are imported only when a command is called: a skill's process loads this module and must start fast.
"""

import sys
from collections.abc import Callable


def swarm_command() -> None:
    """Entry point of ``swarm``."""

    def load() -> Callable[[], None]:
        from fireswarm.cli.swarm.main import main

        return main

    _call(load)


def agent_command() -> None:
    """Entry point of ``agent``."""

    def load() -> Callable[[], None]:
        from fireswarm.cli.agent.main import main

        return main

    _call(load)


def _call(load: Callable[[], Callable[[], None]]) -> None:
    """Load a command and run it: fast, with usable streams, and without a traceback for SIGINT or a full output."""
    try:
        from fireswarm.cli.streams import end_output, prepare_streams, use_utf8
        from fireswarm.processes.messages import import_folders
        from fireswarm.processes.startup import (
            INTERRUPTED,
            end_on_interrupt,
            freeze,
            stop_on_interrupt,
            without_collector,
        )

        sys.path[:] = import_folders()  # a model may write modules into the current folder
        stop_on_interrupt()
        use_utf8()
        prepare_streams()
        with without_collector():
            main = load()
        freeze()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    code: int | str | None = 0
    try:
        main()
    except SystemExit as end:
        code = end.code
    except KeyboardInterrupt:
        code = INTERRUPTED
    finally:
        end_on_interrupt()
        freeze()
    if reason := end_output():
        from fireswarm.cli.shared.errors import print_error

        print_error(reason)
        code = code or 1
    raise SystemExit(code)
