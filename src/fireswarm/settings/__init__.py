"""Settings from swarm.yaml, agent.yaml and the environment."""

from fireswarm.settings.agent import AgentSettings
from fireswarm.settings.load import find_agent_file, load_agent_settings, load_found_settings, load_settings
from fireswarm.settings.swarm import CONFIG_FILE, ENVIRONMENT, STORE_TOKEN, Settings

__all__ = [
    "CONFIG_FILE",
    "ENVIRONMENT",
    "STORE_TOKEN",
    "AgentSettings",
    "Settings",
    "find_agent_file",
    "load_agent_settings",
    "load_found_settings",
    "load_settings",
]
