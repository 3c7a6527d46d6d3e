"""An exact sliding window."""

from drip.errors import TooMany
from drip.window import Window

__all__ = ["TooMany", "Window"]
__version__ = "1.8.0"
