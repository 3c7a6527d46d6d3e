"""Routes of the HTTP API, one file per collection."""

from fireswarm.api.routes import (
    agents,
    artifacts,
    capabilities,
    events,
    health,
    mail,
    memory,
    metrics,
    runs,
    status,
    tasks,
)
from fireswarm.api.routes.schedules import schedule_routes

ROUTERS = (
    capabilities.router,
    agents.router,
    tasks.router,
    schedule_routes.router,
    artifacts.router,
    runs.router,
    mail.router,
    memory.router,
    status.router,
    events.router,
    metrics.router,
    health.router,
)

__all__ = ["ROUTERS"]
