"""Stores of buckets. A store does read, fill and take in one step, so that two machines cannot take the same token."""

import threading
from typing import Protocol


class StoreError(Exception):
    """The store did not answer in time, or refused."""


class Store(Protocol):
    """What a gate needs of a store. ``now`` is the time of the caller."""

    def take(
        self, key: str, tokens: float, size: float, per_second: float, now: float, expire: float, timeout: float
    ) -> float:
        """Take tokens and return what is left; below zero if there were not enough, and none was taken."""

    def peek(self, key: str, size: float, per_second: float, now: float) -> float:
        """Return what a bucket holds."""


SCRIPT = """
local bucket = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens = tonumber(bucket[1]) or tonumber(ARGV[2])
local at = tonumber(bucket[2]) or tonumber(ARGV[4])
tokens = math.min(tonumber(ARGV[2]), tokens + (tonumber(ARGV[4]) - at) * tonumber(ARGV[3]))
local left = tokens - tonumber(ARGV[1])
if left >= 0 then tokens = left end
redis.call('HSET', KEYS[1], 'tokens', tokens, 'at', ARGV[4])
redis.call('EXPIRE', KEYS[1], math.ceil(ARGV[5]))
return tostring(left)
"""


class RedisStore:
    """Buckets in Redis; *client* is a connected client of any package that has ``eval``."""

    def __init__(self, client) -> None:
        self.client = client

    def take(self, key, tokens, size, per_second, now, expire, timeout) -> float:
        try:
            return float(self.client.eval(SCRIPT, 1, key, tokens, size, per_second, now, expire))
        except OSError as error:
            raise StoreError(str(error)) from error

    def peek(self, key, size, per_second, now) -> float:
        try:
            tokens, at = self.client.hmget(key, "tokens", "at")
        except OSError as error:
            raise StoreError(str(error)) from error
        return size if tokens is None else min(size, float(tokens) + (now - float(at)) * per_second)


class MemoryStore:
    """Buckets in this process, for tests."""

    def __init__(self) -> None:
        self.buckets: dict[str, tuple[float, float]] = {}
        self.lock = threading.Lock()

    def take(self, key, tokens, size, per_second, now, expire, timeout) -> float:
        with self.lock:
            held, at = self.buckets.get(key, (size, now))
            held = min(size, held + (now - at) * per_second)
            left = held - tokens
            self.buckets[key] = (left if left >= 0 else held, now)
            return left

    def peek(self, key, size, per_second, now) -> float:
        held, at = self.buckets.get(key, (size, now))
        return min(size, held + (now - at) * per_second)
