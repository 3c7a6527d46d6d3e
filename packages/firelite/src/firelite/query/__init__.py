"""Queries: parse, plan, match, order, aggregate; index definitions."""
