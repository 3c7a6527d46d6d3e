"""Conversations of fireswarm's skills in PostgreSQL."""
