"""``python -m fireswarm.cli`` is ``swarm``."""

from fireswarm.cli import swarm_command as main

if __name__ == "__main__":
    main()
