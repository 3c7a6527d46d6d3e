"""Rank skills for an objective and explain the ranking."""
