"""Strict checks behind `swarm skills check`."""
