"""Requests to a model, its responses and its decisions."""
