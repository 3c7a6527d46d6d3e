"""The HTTP API of one session, with FastAPI. It calls the same functions as the command line.

Imported only by ``swarm api``, since FastAPI is an extra.
"""
