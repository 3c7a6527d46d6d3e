"""``swarm pipeline``: its files, and how far the steps of a run are."""
