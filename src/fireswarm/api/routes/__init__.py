"""Routes of the HTTP API, one file per collection."""

from fireswarm.api.routes import agents, artifacts, capabilities, events, mail, memory, runs, status, tasks

ROUTERS = (
    capabilities.router,
    agents.router,
    tasks.router,
    artifacts.router,
    runs.router,
    mail.router,
    memory.router,
    status.router,
    events.router,
)

__all__ = ["ROUTERS"]
