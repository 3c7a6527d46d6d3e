"""Runs of a model or a skill: their steps, where those are kept, and how a run is put together."""
