"""Confinement with Landlock: no program to install, and no user namespaces."""
