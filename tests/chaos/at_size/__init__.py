"""Chaos at size: ``python -m tests.chaos.at_size --tasks 10000`` prints one JSON line. ``make chaos`` runs it."""
