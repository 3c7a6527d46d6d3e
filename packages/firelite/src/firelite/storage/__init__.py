"""Commits, versions in memory, the SQLite file and its lock."""
