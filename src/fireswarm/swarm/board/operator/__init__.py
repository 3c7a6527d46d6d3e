"""Operator actions on a task: cancel, retry, answer, explain."""
