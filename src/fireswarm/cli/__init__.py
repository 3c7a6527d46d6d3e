"""The command lines: ``swarm`` for the fleet, ``agent`` for a single agent.

Nothing is imported until a command is called: a skill's process loads this module and must start fast.
"""


def swarm_command() -> None:
    """Entry point of ``swarm``."""
    from fireswarm.processes.startup import freeze, without_collector

    with without_collector():
        from fireswarm.cli.swarm.main import main

    freeze()
    try:
        main()
    finally:
        freeze()


def agent_command() -> None:
    """Entry point of ``agent``."""
    from fireswarm.processes.startup import freeze, without_collector

    with without_collector():
        from fireswarm.cli.agent.main import main

    freeze()
    try:
        main()
    finally:
        freeze()
