"""The command line of the fleet: ``swarm``."""


def main() -> None:
    """Entry point. Imports nothing until it is called: a skill's process loads this module and must start fast."""
    from fireswarm.cli.main import main as run

    run()
