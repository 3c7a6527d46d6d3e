"""Token buckets for services."""

from tollgate.gate import Gate
from tollgate.rates import Rate
from tollgate.stores import MemoryStore, StoreError

__all__ = ["Gate", "MemoryStore", "Rate", "StoreError"]
__version__ = "3.2.1"
