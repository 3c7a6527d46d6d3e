"""The command lines: ``swarm`` for the fleet, ``agent`` for one agent.

Nothing is imported until a command is called: a skill's process loads this module and must start fast.
"""


def swarm_command() -> None:
    """Entry point of ``swarm``."""
    from fireswarm.quick import freeze, without_collector

    with without_collector():
        from fireswarm.cli.swarm import main

    freeze()
    try:
        main()
    finally:
        freeze()


def agent_command() -> None:
    """Entry point of ``agent``."""
    from fireswarm.quick import freeze, without_collector

    with without_collector():
        from fireswarm.cli.agent import main

    freeze()
    try:
        main()
    finally:
        freeze()
