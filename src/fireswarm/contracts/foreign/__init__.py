"""Calls of code that others wrote: they can end themselves, and nothing else."""
