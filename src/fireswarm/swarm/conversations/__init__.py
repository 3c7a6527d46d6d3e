"""Skills that stop and resume: rules of a turn, calls inside a run, and turns without a swarm.

``rules`` enforces a skill's contract, ``inline_call`` enforces it for a skill that a model calls, ``adapter`` runs a
skill without a swarm. ``storage.conversations`` stores the state.
"""
