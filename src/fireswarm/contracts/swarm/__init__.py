"""Stored documents of the swarm: tasks, runs, envelopes, events, roles, agents."""
