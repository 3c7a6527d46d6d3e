"""Checks before a task is submitted, and stored agents."""
