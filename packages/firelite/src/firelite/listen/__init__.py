"""Listeners: targets and the stream of changes."""
