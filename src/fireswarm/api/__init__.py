"""The HTTP API: one session of a swarm behind FastAPI. It calls what the command line calls.

Imported by ``swarm api`` alone: FastAPI is an extra.
"""
