"""Checks before a task is submitted; stored agents."""
