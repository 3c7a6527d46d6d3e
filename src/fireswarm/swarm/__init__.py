"""The durable swarm: board, records, roles, turns and workers."""
