"""fireswarm: a durable, multi-role agent swarm on Firestore."""

__version__ = "0.1.0"
