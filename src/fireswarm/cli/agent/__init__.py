"""The command `agent`."""
