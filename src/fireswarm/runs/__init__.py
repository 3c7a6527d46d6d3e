"""Runs of a model or a skill: their steps, the storage of steps, and the assembly of a run."""
