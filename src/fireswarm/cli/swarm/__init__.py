"""The command `swarm`."""
