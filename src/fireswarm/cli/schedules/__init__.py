"""``swarm schedule``: objectives that are submitted again and again."""
