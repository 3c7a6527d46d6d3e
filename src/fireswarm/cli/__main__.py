"""``python -m fireswarm.cli`` is ``swarm``."""

from fireswarm.cli import main

if __name__ == "__main__":
    main()
