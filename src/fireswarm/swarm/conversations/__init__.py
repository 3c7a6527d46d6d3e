"""Skills that stop and resume: rules of a turn, calls inside a run.

``rules`` holds a skill to its contract, ``inline_call`` does so for a skill that a model calls, ``adapter`` runs one
without a swarm. ``storage.conversations`` keeps the state.
"""
