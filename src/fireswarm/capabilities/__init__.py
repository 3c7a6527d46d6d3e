"""Capabilities: tools and instructions for an agent, a role or a task.

Your own capability::

    from fireswarm.capabilities import Capability, tool

    @tool
    def roll(sides: int = 6) -> int:
        \"\"\"Rolls a die.\"\"\"
        return random.randint(1, sides)

    DICE = Capability("dice", "Dice", "Rolls dice.", tools=lambda config, context: [roll])

and in your package's ``pyproject.toml``::

    [project.entry-points."fireswarm.capabilities"]
    dice = "yourpackage.dice:DICE"
"""

from fireswarm.capabilities.capability import Capability, CapabilityContext, NoConfig, tool
from fireswarm.capabilities.registry import Registry, Resolved, registry, registry_for

__all__ = ["Capability", "CapabilityContext", "NoConfig", "Registry", "Resolved", "registry", "registry_for", "tool"]
