"""Skills that stop and resume: what is kept of a conversation, what a turn may do, and who may go on.

``change`` is the pure heart: one change, within the bounds, cleaned. ``documents`` keeps conversations in the swarm's
own store; files and Postgres are adapters in ``stores``. ``turns`` holds a skill to its contract,
``within`` a skill that a model calls.
"""
