"""Demos: `swarm demo` on a folder, and with recorded answers of a model."""
