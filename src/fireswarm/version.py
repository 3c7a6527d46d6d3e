"""The version of the installed package, from its metadata."""

from importlib.metadata import version

__version__ = version("fireswarm")
