"""Tools of the session file system, called by name as a model calls them."""

from __future__ import annotations

from typing import Any

from fireswarm.capabilities import CapabilityContext, registry
from fireswarm.contracts.skills.capability import CapabilityUse
from fireswarm.mind import Tool


class Hands:
    """Calls tools by name, as a model does."""

    def __init__(self, context: CapabilityContext, **config: Any) -> None:
        use = CapabilityUse(id="session_file_system", config=config)
        self.tools: dict[str, Tool] = dict(registry().resolve([use], context).tools)

    async def __call__(self, name: str, **given: Any) -> Any:
        return await self.tools[name].run(given)

    async def paths(self, folder: str = "/") -> list[str]:
        entries = (await self("list_directory", path=folder))["entries"]
        return [entry["path"] + "/" * entry["is_directory"] for entry in entries]
