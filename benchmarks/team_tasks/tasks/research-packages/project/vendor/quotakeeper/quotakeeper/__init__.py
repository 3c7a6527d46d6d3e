"""Quotas by the generic cell rate algorithm."""

from quotakeeper.keeper import Decision, Keeper, Undecided
from quotakeeper.quota import Quota
from quotakeeper.stores import MemoryStore, SqlStore, StoreUnavailable

__all__ = ["Decision", "Keeper", "MemoryStore", "Quota", "SqlStore", "StoreUnavailable", "Undecided"]
